// The pool: what users hold.
#pragma once

#include <pagesift/backend/backend.hpp>
#include <pagesift/core/error.hpp>
#include <pagesift/core/inlining.hpp>
#include <pagesift/core/statistics.hpp>
#include <pagesift/pool/backing_choice.hpp>
#include <pagesift/pool/bound_stream.hpp>
#include <pagesift/pool/default_pools.hpp>
#include <pagesift/pool/free_path.hpp>
#include <pagesift/pool/give_to_others.hpp>
#include <pagesift/pool/hit_path.hpp>
#include <pagesift/pool/kept_state.hpp>
#include <pagesift/pool/lifetime.hpp>
#include <pagesift/pool/options.hpp>
#include <pagesift/pool/pool_handle.hpp>
#include <pagesift/pool/pool_life.hpp>
#include <pagesift/pool/request_path.hpp>
#include <pagesift/pool/state.hpp>
#include <pagesift/pool/upkeep.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace pagesift {

/// A size-class caching allocator of one backend's memory, ordered by stream.
///
/// Memory freed on a stream may be taken again on that stream at once: the stream itself orders
/// the old use before the new. Another stream gets it when the old use is complete or after it was
/// made to wait for it. Sizes are bytes. Every function may be called from any thread at once. The
/// pool never reads or writes through a block's address.
///
/// The stream given to a call must be alive during that call. A block that other streams used too
/// must be freed on a stream that waits for them, or the pool be told by `record_use`.
///
/// In a forked child, and once the process has begun to exit, a pool of a backend that needs a
/// driver makes no call of it: what would return memory throws process_error, `trim`, `end_batch`
/// and `retire` do nothing, no more than a free or the destructor. Host memory is not concerned.
/// The same goes for a pool whose device was reset (cudaDeviceReset): its memory is gone.
template <typename Backend>
class basic_pool : private kept_state<Backend> {
  static_assert(is_backend_v<Backend>, "Backend must model pagesift::is_backend");

 public:
  using backend_type = Backend;
  using stream_type = typename Backend::stream_type;

  /// \throws invalid_argument for options out of range or a device that is not there,
  /// out_of_memory where `initial_bytes` cannot be had, backend_error
  explicit basic_pool(pool_options options = {})
      : basic_pool{Backend::open(options.device), std::move(options)} {}
  explicit basic_pool(Backend backend, pool_options options = {});

  basic_pool(const basic_pool&) = delete;
  basic_pool& operator=(const basic_pool&) = delete;

  /// Waits for all work of the context, then releases every granule that no block in use lies in.
  /// Memory still in use, or that a graph may name, is left to the backend rather than pulled from
  /// under its user. Once the process has begun to exit, does nothing.
  ~basic_pool();

  /// The pool of the current device that everybody shares. Made at first use, never destroyed: at
  /// process exit the backend may be gone before the last static object is. Once a call of it has
  /// found that its device was reset, another takes its place.
  /// \throws what making a pool throws
  [[nodiscard]] static basic_pool& default_pool() {
    return default_pools<basic_pool>::of(Backend::current_device());
  }
  /// The same of `device`. \throws invalid_argument where there is no such device, and as above
  [[nodiscard]] static basic_pool& default_pool(int device) {
    return default_pools<basic_pool>::of(device);
  }

  /// At least `bytes` bytes for work submitted to `stream` from now on; never null, for 0 bytes
  /// too. Aligned to 256 bytes.
  /// On a capturing stream the block belongs to the graph: it serves nobody else before the graph,
  /// its executables and its launches are over, whenever it is freed.
  /// \throws out_of_memory, size_overflow, invalid_alignment, capture_error if `stream` is
  /// capturing and the capture was invalidated, backend_error, process_error, std::bad_alloc if the
  /// host is short of memory. Blocks in use are then as before; idle memory may have been given
  /// back to the backend.
  [[nodiscard]] void* allocate(std::size_t bytes, stream_type stream) {
    return allocate(bytes, default_alignment, stream);
  }
  /// The same, aligned to `alignment` bytes, a power of two up to 2 MiB.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment, stream_type stream);

  /// Gives back what `allocate` returned, last used by work already submitted to `stream`. The
  /// memory need not have been allocated on that stream. Null is ignored; a pointer that the pool
  /// did not hand out, or that was freed before, is left alone and counted in
  /// `pool_stats::rejected_frees`.
  ///
  /// Freed on the stream it was allocated on, the block may be used there again at once; no call
  /// asks the stream whether it is capturing meanwhile. While the pool knows of a capture, each
  /// free asks, and what is freed on a capturing stream is kept until its graph is over, except for
  /// requests of the same capture that come after the free. So a graph must not use memory that was
  /// allocated before its capture and freed in it, unless the pool knew of the capture by then: a
  /// request on one of its streams tells it.
  ///
  /// \param bytes as given to `allocate`
  void deallocate(void* p, std::size_t bytes, stream_type stream) noexcept;

  /// The pool with one stream named once and for all: its calls ask less of the driver. The stream
  /// must outlive what is returned, and the pool must, too.
  /// \throws capture_error if `stream` is capturing, backend_error, std::bad_alloc
  [[nodiscard]] bound_stream<basic_pool> on(stream_type stream);

  /// Says that the block at `p` is used on `stream` too, by work submitted to it so far. When it is
  /// freed, on whichever stream, nobody gets it before that work is complete or behind a wait for
  /// it; so `stream` need not be alive any more by then, and the stream of the free need not wait.
  /// Costs an event call, the free and the next request a little more than usual. Called again, it
  /// covers later work as well. Uses on the stream of the free need not be told of.
  /// \param bytes as given to `allocate`
  /// \throws invalid_argument where nobody has `p` from this pool; capture_error if `stream` is
  /// capturing: what a graph does is known only when it runs; backend_error, process_error,
  /// std::bad_alloc. The block is then as before.
  void record_use(void* p, std::size_t bytes, stream_type stream);

  /// For callers that do not know the stream: memory whose earlier uses the host has seen
  /// complete, good for every stream. \throws as `allocate`, except capture_error
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = default_alignment);

  /// Gives back memory used on any streams: waits for all work of the context, as cudaFree does.
  void deallocate_sync(void* p, std::size_t bytes) noexcept;

  /// Gives idle memory back to the backend, oldest first, until at most `keep_bytes` are idle. If
  /// idle memory may still be in use by submitted work, waits for all work of the context. Whole
  /// granules only: one block in use, or kept for a graph, keeps those it lies in.
  /// \throws backend_error
  void trim(std::size_t keep_bytes = 0);

  /// Ends a batch: memory of classes that no request touched since the last `end_batch` goes back
  /// to the backend, under the same conditions as in `trim`. \throws backend_error
  void end_batch();

  /// Says that `stream` will be destroyed: records an event on it, so that other streams can take
  /// the memory freed on it. Does nothing on a capturing stream.
  /// \throws backend_error, std::bad_alloc if the host is short of memory
  void retire(stream_type stream);

  /// Whether a call of this pool has found that its device was reset since the pool was made. Asks
  /// nothing; never changes back.
  [[nodiscard]] bool found_reset() const noexcept { return state_.gate.closed_by(hit_gate::reset); }

  /// The counters as they are now. \throws process_error, std::bad_alloc
  [[nodiscard]] pool_stats stats() const;

  /// Sets the peaks to the present values; changes nothing else.
  void reset_peaks() noexcept;

  /// With `checks::full`: reports each block in use as a leak (`pool_options::on_misuse`), as the
  /// destructor does; for pools that are never destroyed. Returns how many there are, 0 with other
  /// checks. \throws std::bad_alloc
  std::size_t report_leaks() const { return state_.watch ? state_.watch->report_leaks() : 0; }

  [[nodiscard]] const pool_options& options() const noexcept { return state_.options; }
  [[nodiscard]] Backend& backend() noexcept { return state_.backend; }

  /// The backend, for a call about this pool's memory. \throws process_error where there is no way
  /// to it any more: the device was reset, or the process was forked or has begun to exit
  [[nodiscard]] Backend& backend_within_reach() {
    require_reach(state_);
    return state_.backend;
  }

  /// Names this pool, as large as a pointer; the pool must outlive it.
  [[nodiscard]] pool_handle<basic_pool> handle() noexcept { return pool_handle<basic_pool>{*this}; }

  /// A Thrust execution policy that takes temporary storage from this pool and runs on `stream`.
  /// Defined where pagesift/adapters/policy.hpp is included, which knows what a policy is.
  template <typename Pool = basic_pool>
  [[nodiscard]] auto policy(stream_type stream = {}) {
    return make_policy(static_cast<Pool&>(*this), stream);
  }
  /// The same, not waiting for the stream where the result does not need it.
  template <typename Pool = basic_pool>
  [[nodiscard]] auto policy_nosync(stream_type stream = {}) {
    return make_policy_nosync(static_cast<Pool&>(*this), stream);
  }

 private:
  friend class bound_stream<basic_pool>;

  using kept_state<Backend>::state_;

  [[nodiscard]] void* allocate_bound(const bound_stream<basic_pool>& on, std::size_t bytes,
                                     std::size_t alignment);

  [[nodiscard]] void* allocate_beyond_hits(stream_type stream, const wanted_block& wanted,
                                           std::size_t alignment);
  void free_beyond_hits(const void* p, std::size_t bytes, stream_type stream) noexcept;

  pool_life<Backend> life_{state_};
};

template <typename Backend>
basic_pool<Backend>::basic_pool(Backend backend, pool_options options)
    : kept_state<Backend>{std::move(backend), std::move(options)} {
  const pool_options& o = state_.options;
  if (o.limit_bytes < page_bytes) {
    throw invalid_argument{"limit_bytes must be at least one page of " +
                           std::to_string(page_bytes) + " bytes, got " +
                           std::to_string(o.limit_bytes)};
  }
  if (o.limit_bytes != no_limit &&
      divide_round_up(o.initial_bytes, page_bytes) > o.limit_bytes / page_bytes) {
    throw invalid_argument{"initial_bytes must not exceed limit_bytes in whole pages of " +
                           std::to_string(page_bytes) + " bytes, got " +
                           std::to_string(o.initial_bytes) + " and " +
                           std::to_string(o.limit_bytes)};
  }
  state_.total_bytes = state_.backend.memory().total_bytes;
  state_.maps = takes_virtual_memory(state_.backend, o);
  if (o.initial_bytes != 0) {
    pool_lock lock{state_.caches};
    take_initial_bytes(lock, state_);
  }
  if (const auto place = place_of(state_.backend)) {
    state_.gives = giver_registration{
        *place, [this](std::size_t bytes) { return give_to_others(state_, bytes); }};
  }
}

template <typename Backend>
basic_pool<Backend>::~basic_pool() {
  state_.gives.reset();
  life_.leave();
  const bool exiting = process_life::get().exiting();
  const bool gone = !exiting && is_out_of_reach(state_);
  if (!gone) {
    try {
      (void)report_leaks();
    } catch (const std::exception&) {
    }
  }
  if (exiting || gone) {
    if (state_.watch != nullptr) {
      state_.watch->leave();
    }
    return;
  }
  release_everything(state_);
}

template <typename Backend>
void* basic_pool<Backend>::allocate(std::size_t bytes, std::size_t alignment, stream_type stream) {
  const wanted_block wanted{bytes, class_of(bytes, alignment)};
  stream_id id = 0;
  if (state_.gate.open_to_requests() && state_.backend.get_id_unless_capturing(stream, id)) {
    if (void* p = try_hit(state_, stream, id, wanted)) {
      return p;
    }
  }
  return allocate_beyond_hits(stream, wanted, alignment);
}

template <typename Backend>
void* basic_pool<Backend>::allocate_bound(const bound_stream<basic_pool>& on, std::size_t bytes,
                                          std::size_t alignment) {
  const wanted_block wanted{bytes, class_of(bytes, alignment)};
  const bool trusted = state_.options.checks == checks::trusted;
  if (state_.gate.open_to_requests() && (trusted || state_.backend.is_not_capturing(on.stream_))) {
    if (void* p = try_hit(state_, on.stream_, on.id_, wanted)) {
      return p;
    }
  }
  return allocate_beyond_hits(on.stream_, wanted, alignment);
}

/// A request that was no hit, by way of the watch where there is one.
template <typename Backend>
PAGESIFT_RARELY_CALLED void* basic_pool<Backend>::allocate_beyond_hits(stream_type stream,
                                                                       const wanted_block& wanted,
                                                                       std::size_t alignment) {
  require_reach(state_);
  process_life::get().notice_exit_before(life_);
  if (state_.watch == nullptr) {
    return allocate_slowly(state_, stream, wanted, alignment);
  }
  return state_.watch->allocate(wanted.bytes, alignment, stream, [&](std::size_t bytes) {
    return allocate_slowly(state_, stream, {bytes, class_of(bytes, alignment)}, alignment);
  });
}

template <typename Backend>
void* basic_pool<Backend>::allocate_sync(std::size_t bytes, std::size_t alignment) {
  (void)class_of(bytes, alignment);  // what no pool can serve is refused first, as in `allocate`
  require_reach(state_);
  process_life::get().notice_exit_before(life_);
  const auto serve = [&](std::size_t needed) {
    const request wanted = make_request(needed, alignment);
    pool_lock lock{state_.caches};
    return serve_slowly<Backend>(lock, state_, state_.memory.streams.quiet(), wanted, std::nullopt);
  };
  return state_.watch == nullptr ? serve(bytes)
                                 : state_.watch->allocate(bytes, alignment, std::nullopt, serve);
}

template <typename Backend>
void basic_pool<Backend>::deallocate(void* p, std::size_t bytes, stream_type stream) noexcept {
  if (p == nullptr) {
    return;
  }
  if (state_.gate.open() || may_free_beside_captures(state_, stream)) {
    // Looked up behind the question: what listens to calls of the driver may use the pool, too.
    if (remembered_stream<Backend>* known = last_streams<Backend>::find(state_.number, stream)) {
      free_on(state_, *known, p, stream);
      return;
    }
  }
  free_beyond_hits(p, bytes, stream);
}

/// A free that does not take the short way, by way of the watch where there is one.
template <typename Backend>
PAGESIFT_RARELY_CALLED void basic_pool<Backend>::free_beyond_hits(const void* p, std::size_t bytes,
                                                                  stream_type stream) noexcept {
  if (is_out_of_reach(state_)) {
    return;
  }
  if (state_.watch == nullptr) {
    free_slowly(state_, p, stream);
  } else {
    state_.watch->deallocate(p, bytes, stream, [&](const void* q, bool on_that_stream) {
      on_that_stream ? free_slowly(state_, q, stream) : free_unordered(state_, q);
    });
  }
}

template <typename Backend>
void basic_pool<Backend>::record_use(void* p, std::size_t, stream_type stream) {
  require_reach(state_);
  const stream_state seen = state_.backend.inspect(stream);
  require_ok(state_.backend, seen.result);
  pool_lock lock{state_.caches};
  state_.captures.see(stream, seen);
  if (seen.capturing) {
    throw capture_error{"record_use named a stream that is capturing a graph"};
  }
  const void* const start = state_.watch == nullptr ? p : state_.watch->begin_of(p);
  block* const b = state_.memory.heap.find(start);
  if (b == nullptr || !b->in_users_hands()) {
    throw invalid_argument{"record_use named memory that nobody has from this pool"};
  }
  require_ok(state_.backend, mark_use(lock, state_, *b, seen.id, stream));
  if (state_.watch != nullptr) {
    state_.watch->note_other_use(p);
  }
}

template <typename Backend>
void basic_pool<Backend>::deallocate_sync(void* p, std::size_t bytes) noexcept {
  if (p == nullptr || is_out_of_reach(state_)) {
    return;
  }
  if (state_.watch == nullptr) {
    free_unordered(state_, p);
    return;
  }
  const auto users_are_done = [&] {
    pool_lock lock{state_.caches};
    return fence(lock, state_).ok();
  };
  state_.watch->deallocate_sync(p, bytes, users_are_done(),
                                [&](const void* q, bool) { free_unordered(state_, q); });
}

template <typename Backend>
bound_stream<basic_pool<Backend>> basic_pool<Backend>::on(stream_type stream) {
  require_reach(state_);
  const stream_state seen = state_.backend.inspect(stream);
  require_ok(state_.backend, seen.result);
  if (seen.capturing) {
    throw capture_error{0, "that is capturing a graph, which cannot be bound meanwhile"};
  }
  return {*this, stream, seen.id};
}

template <typename Backend>
void basic_pool<Backend>::trim(std::size_t keep_bytes) {
  if (!is_out_of_reach(state_)) {
    pagesift::trim(state_, keep_bytes);
  }
}

template <typename Backend>
void basic_pool<Backend>::end_batch() {
  if (!is_out_of_reach(state_)) {
    pagesift::end_batch(state_);
  }
}

template <typename Backend>
void basic_pool<Backend>::retire(stream_type stream) {
  if (!is_out_of_reach(state_)) {
    pagesift::retire(state_, stream);
  }
}

template <typename Backend>
pool_stats basic_pool<Backend>::stats() const {
  require_reach(state_);
  pool_lock lock{state_.caches};
  lock.freeze();
  reap_arenas(lock, state_);
  pool_stats s = state_.counters.report(state_.options.exact_peaks);
  s.captured = state_.arenas.bytes();
  s.largest_idle_block = state_.memory.largest();
  s.streams = state_.memory.streams.size();
  s.live_events = state_.memory.events.size();
  return s;
}

template <typename Backend>
void basic_pool<Backend>::reset_peaks() noexcept {
  if (state_.gate.out_of_reach()) {
    return;
  }
  pool_lock lock{state_.caches};
  lock.freeze();
  state_.counters.reset_peaks();
}

}  // namespace pagesift
