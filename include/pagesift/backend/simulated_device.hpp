// The simulated device as a test sees it: streams that run when told, and a judge of every block.
#pragma once

#include <pagesift/backend/simulated_announcer.hpp>
#include <pagesift/backend/simulated_calls.hpp>
#include <pagesift/backend/simulated_captures.hpp>
#include <pagesift/backend/simulated_contents.hpp>
#include <pagesift/backend/simulated_graphs.hpp>
#include <pagesift/backend/simulated_judge.hpp>
#include <pagesift/backend/simulated_mapping.hpp>
#include <pagesift/backend/simulated_memory.hpp>
#include <pagesift/backend/simulated_streams.hpp>
#include <pagesift/backend/simulated_work.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pagesift {

/// What happens when the host waits for work that stands behind a closed gate.
enum class blocked_wait : unsigned char {
  is_violation,   ///< a deadlock: noted, and the call fails
  opens_gates,    ///< every kernel comes to its end: all gates open
  waits_for_open  ///< another thread is going to open the gate
};

/// How a simulated device is set up. Sizes are bytes.
struct simulated_options {
  std::size_t budget_bytes = 16 * gibibyte;  ///< memory beyond this is a shortage
  std::uint64_t seed = 1;                    ///< of the order in which work runs

  /// Addresses set aside for acquisitions, and as many again for what `reserve` gives.
  /// ThreadSanitizer does not always leave room for as much as 1 TiB.
  std::size_t reservation_bytes = 64 * gibibyte;

  /// Acquisitions start at multiples of 2 MiB; else only at multiples of 256 bytes.
  bool page_aligned = true;

  /// Whether `can_map` says that addresses can be reserved and memory mapped behind them.
  bool virtual_memory = true;

  /// The backend's acquire, release, query and synchronize do not break captures, as if each were
  /// made inside a section of relaxed capture mode.
  bool relaxed_sections = false;

  /// Before the host asks about an event all work runs that no gate holds back, as on a device with
  /// little to do; else work runs when the host waits, or the test lets it.
  bool prompt = false;

  /// Whoever watches a graph is told of its end only by `tell_of_endings`; else as soon as the last
  /// launch has run.
  bool tells_late = false;

  /// The same, but they are told as soon as the pool rests to wait for it.
  bool tells_at_rest = false;

  blocked_wait on_blocked_wait = blocked_wait::is_violation;
  bool keeps_log = false;  ///< keep every call for log(), not only the counts
};

/// A kernel that spins until the test opens it.
struct simulated_gate {
  std::uint64_t number = 0;
};

/// One simulated device. The pool under test reaches it through simulated_backend; the test drives
/// it through this class. Thread-safe.
///
/// What it does not model: the legacy default stream orders nothing but itself, and a capture does
/// not mind streams that were not joined at its end.
class simulated_device {
 public:
  using call_hook = std::function<void(simulated_call)>;

  explicit simulated_device(const simulated_options& options = {})
      : options_{options},
        space_{options.reservation_bytes},
        reserved_{options.reservation_bytes},
        judge_{space_, reserved_, mapped_},
        work_{options.seed},
        book_{options.keeps_log} {}
  simulated_device(const simulated_device&) = delete;
  simulated_device& operator=(const simulated_device&) = delete;

  /// The device that `simulated_backend::open` finds. Never destroyed.
  [[nodiscard]] static simulated_device& shared() {
    static auto* const device = new simulated_device{};
    return *device;
  }

  // Streams and their work. None of these counts as a call of the backend.

  [[nodiscard]] simulated_stream create_stream() {
    const std::lock_guard lock{mutex_};
    return streams_.create();
  }

  /// Work that was submitted still runs; the handle is dead and will soon name another stream.
  void destroy_stream(simulated_stream s) {
    const std::lock_guard lock{mutex_};
    if (checked("destroy_stream", s) != nullptr) {
      streams_.destroy(s);
    }
  }

  /// Submits a kernel that reads and writes `bytes` bytes at `p`.
  void use(simulated_stream s, const void* p, std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    simulation::stream* const stream = checked("use", s);
    if (stream != nullptr && captures_.capturing(*stream)) {
      capture_use(*stream, p, bytes);
    } else if (stream != nullptr) {
      note_use(*stream, p, bytes);
      work_.submit(*stream, {nullptr, nullptr});
    }
  }

  /// Submits a kernel that spins until `open` is called.
  [[nodiscard]] simulated_gate gate(simulated_stream s) {
    const std::lock_guard lock{mutex_};
    const simulated_gate gate{++gates_made_};
    if (simulation::stream* const stream = checked("gate", s)) {
      const auto opening = std::make_shared<simulation::moment>();
      closed_gates_.emplace(gate.number, opening);
      work_.submit(*stream, {opening, nullptr});
    }
    return gate;
  }

  void open(simulated_gate gate) {
    const std::lock_guard lock{mutex_};
    if (const auto closed = closed_gates_.find(gate.number); closed != closed_gates_.end()) {
      closed->second->reached = true;
      closed_gates_.erase(closed);
    }
    gate_opened_.notify_all();
  }

  void open_all_gates() {
    const std::lock_guard lock{mutex_};
    open_gates();
  }

  /// Makes later work of `to` wait for the work submitted to `from` so far. Where `from` captures,
  /// `to` joins the capture; a capture cannot wait for what is outside of it: that breaks it.
  void order(simulated_stream from, simulated_stream to) {
    const std::lock_guard lock{mutex_};
    simulation::stream* const source = checked("order", from);
    simulation::stream* const target = checked("order", to);
    if (source == nullptr || target == nullptr) {
      return;
    }
    if (captures_.capturing(*source)) {
      captures_.order(*source, *target);
    } else if (captures_.capturing(*target)) {
      captures_.break_one(*target);
    } else {
      submit_wait(*target, submit_record(*source));
    }
  }

  /// The host waits for all work of `s`.
  void synchronize(simulated_stream s) {
    std::unique_lock lock{mutex_};
    if (simulation::stream* const stream = checked("synchronize", s)) {
      wait_for(lock, *submit_record(*stream));
    }
  }

  /// The host waits for all work of all streams.
  void synchronize() {
    std::unique_lock lock{mutex_};
    wait_for_all(lock);
  }

  /// Lets a random amount of work run, in random order.
  void run_some() {
    const std::lock_guard lock{mutex_};
    work_.run_some();
    tell_unless_late();
  }

  /// Lets all work run that no gate holds back.
  void run_all() {
    const std::lock_guard lock{mutex_};
    work_.run_all();
    tell_unless_late();
  }

  /// Lets the work of `s` run, and what that waits for, as far as no gate holds it back.
  void run_all_of(simulated_stream s) {
    const std::lock_guard lock{mutex_};
    if (simulation::stream* const stream = checked("run_all_of", s)) {
      (void)work_.drain(*stream);
    }
  }

  void begin_capture(simulated_stream s,
                     simulated_capture_mode mode = simulated_capture_mode::global) {
    const std::lock_guard lock{mutex_};
    if (simulation::stream* const stream = checked("begin_capture", s)) {
      captures_.begin(*stream, mode, graphs_.next_number(), graphs_.make());
    }
  }

  /// Whether `s` is capturing and nothing has broken the capture so far.
  [[nodiscard]] bool capture_valid(simulated_stream s) {
    const std::lock_guard lock{mutex_};
    simulation::stream* const stream = checked("capture_valid", s);
    return stream != nullptr && captures_.valid(*stream);
  }

  /// Returns whether the capture was valid to its end. Its graph is destroyed.
  bool end_capture(simulated_stream s) {
    const simulated_graph graph = capture_graph(s);
    if (graph.number != 0) {
      destroy(graph);
    }
    return graph.number != 0;
  }

  /// Ends the capture that `s` takes part in. Returns its graph, or 0 where it was broken.
  [[nodiscard]] simulated_graph capture_graph(simulated_stream s) {
    const std::lock_guard lock{mutex_};
    simulated_graph made;
    simulation::stream* const stream = checked("end_capture", s);
    if (simulation::graph_ptr graph = stream != nullptr ? captures_.end(*stream) : nullptr) {
      made.number = graphs_.next_number();
      held_graphs_.emplace(made.number, std::move(graph));
    }
    tell_unless_late();
    return made;
  }

  [[nodiscard]] simulated_executable instantiate(simulated_graph g) {
    const std::lock_guard lock{mutex_};
    const simulated_executable made{graphs_.next_number()};
    held_graphs_.emplace(made.number, held_graphs_.at(g.number));
    return made;
  }

  /// Makes an executable launch another graph from now on.
  void update(simulated_executable e, simulated_graph g) {
    const std::lock_guard lock{mutex_};
    held_graphs_.at(e.number) = held_graphs_.at(g.number);
    tell_unless_late();
  }

  /// Submits a run of the graph to `s`.
  void launch(simulated_executable e, simulated_stream s) {
    const std::lock_guard lock{mutex_};
    if (simulation::stream* const stream = checked("launch", s)) {
      const simulation::graph_ptr graph = held_graphs_.at(e.number);
      const simulation::tick_count tick = streams_.tick(*stream);
      for (const auto& [number, node] : graph->nodes) {
        judge_.used(node.use, {stream->lane, tick}, stream->clock);
      }
      graph->launched.join(stream->clock);
      work_.submit(*stream, {nullptr, nullptr, graph});
    }
  }

  /// Launches that have not run go on to their end.
  void destroy(simulated_graph g) { let_go(g.number); }
  void destroy(simulated_executable e) { let_go(e.number); }

  /// A pool waits for word of graphs that are over.
  void rest() {
    const std::lock_guard lock{mutex_};
    if (options_.tells_at_rest) {
      tell_all();
    }
  }

  /// Tells whoever watches graphs that are over; the host then knows that all launches have run.
  void tell_of_endings() {
    const std::lock_guard lock{mutex_};
    tell_all();
  }

  // The judge. A test tells it what the pool hands out and gets back.

  /// The pool gave `bytes` bytes at `p` to a user on `s`. A violation unless the memory exists, is
  /// in nobody's hands, and every earlier use of it comes before new work on `s`.
  void hand_out(simulated_stream s, const void* p, std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    simulation::stream* const stream = checked("hand_out", s);
    simulation::capture_member* const part =
        stream != nullptr ? captures_.member(*stream) : nullptr;
    if (part != nullptr) {
      judge_.handed_out(p, bytes, streams_.host());
      check_capture("handed out on a capturing stream", *part, p, bytes);
      check_graphs("handed out on a capturing stream", p, bytes, part->running->graph.get());
    } else if (stream != nullptr) {
      stream->clock.join(streams_.host());
      judge_.handed_out(p, bytes, stream->clock);
      check_graphs("handed out", p, bytes);
    }
  }

  /// The pool gave `bytes` bytes at `p` to a user who may use them on any stream: the host must
  /// have seen every earlier use complete.
  void hand_out(const void* p, std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    judge_.handed_out(p, bytes, streams_.host());
    check_graphs("handed out", p, bytes);
  }

  /// The user is about to free the block on `s`. Counts as a use at that point of `s`, since the
  /// pool cannot know that there was none.
  void hand_back(simulated_stream s, const void* p, std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    if (simulation::stream* const stream = checked("hand_back", s)) {
      judge_.handed_back(p, bytes);
      if (captures_.capturing(*stream)) {
        capture_use(*stream, p, bytes);
      } else {
        note_use(*stream, p, bytes);
      }
    }
  }

  /// The user is about to free the block without naming a stream.
  void hand_back(const void* p, std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    judge_.handed_back(p, bytes);
  }

  /// What was done that a real device would not forgive, one sentence each.
  [[nodiscard]] std::vector<std::string> violations() const {
    const std::lock_guard lock{mutex_};
    return judge_.violations();
  }

  /// How many there are: cheaper to ask often.
  [[nodiscard]] std::size_t violation_count() const {
    const std::lock_guard lock{mutex_};
    return judge_.violations().size();
  }

  // Calls of the backend.

  void fail(const simulated_fault& fault) {
    const std::lock_guard lock{mutex_};
    book_.plant(fault);
  }

  void clear_faults() {
    const std::lock_guard lock{mutex_};
    book_.clear_faults();
  }

  /// `hook` is called before each call takes effect, in the caller's thread, without a lock.
  void before_calls(call_hook hook) {
    const std::lock_guard lock{mutex_};
    before_ = std::move(hook);
  }

  /// `hook` is called after each call took effect, in the caller's thread, without a lock.
  void after_calls(call_hook hook) {
    const std::lock_guard lock{mutex_};
    after_ = std::move(hook);
  }

  /// Calls of that kind since the last reset_calls().
  [[nodiscard]] std::uint64_t calls(simulated_call call) const {
    const std::lock_guard lock{mutex_};
    return book_.count(call);
  }

  void reset_calls() {
    const std::lock_guard lock{mutex_};
    book_.reset();
  }

  [[nodiscard]] std::vector<simulated_call_record> log() const {
    const std::lock_guard lock{mutex_};
    return book_.log();
  }

  // Memory and events.

  /// Somebody's kernel wrote `byte` to these bytes, in whatever order: what is in them, without a
  /// word to the judge.
  void scribble(const void* p, std::size_t bytes, unsigned char byte) {
    const std::lock_guard lock{mutex_};
    contents_.fill({p, bytes}, byte);
  }

  /// Calls `act` with what tools were told of memory.
  template <typename Act>
  void announce(Act act) {
    const std::lock_guard lock{mutex_};
    act(announcements_);
  }
  [[nodiscard]] simulated_announcements announced() const {
    const std::lock_guard lock{mutex_};
    return announcements_;
  }

  void set_budget(std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    options_.budget_bytes = bytes;
  }

  [[nodiscard]] std::size_t budget() const {
    const std::lock_guard lock{mutex_};
    return options_.budget_bytes;
  }

  /// Bytes that are acquired and not released.
  [[nodiscard]] std::size_t acquired_bytes() const {
    const std::lock_guard lock{mutex_};
    return space_.taken_bytes();
  }

  /// Bytes of physical memory that are created and not gone: not destroyed, or still mapped.
  [[nodiscard]] std::size_t physical_bytes() const {
    const std::lock_guard lock{mutex_};
    return mapped_.physical_bytes();
  }

  /// Addresses with physical memory mapped behind them.
  [[nodiscard]] std::size_t mapped_bytes() const {
    const std::lock_guard lock{mutex_};
    return mapped_.mapped_bytes();
  }

  /// Addresses that are reserved, mapped or not.
  [[nodiscard]] std::size_t reserved_bytes() const {
    const std::lock_guard lock{mutex_};
    return reserved_.taken_bytes();
  }

  [[nodiscard]] std::size_t live_events() const {
    const std::lock_guard lock{mutex_};
    return events_.size();
  }

 private:
  friend class simulated_backend;
  friend class simulated_caller;
  friend class simulated_mapper;

  using lock_type = std::unique_lock<std::mutex>;

  /// What the budget leaves.
  [[nodiscard]] std::size_t free_bytes() const {
    const std::size_t held = space_.taken_bytes() + mapped_.physical_bytes();
    return held > options_.budget_bytes ? 0 : options_.budget_bytes - held;
  }

  /// The stream named, or nullptr and a violation.
  [[nodiscard]] simulation::stream* checked(const char* call, simulated_stream s) {
    simulation::stream* const stream = streams_.find(s);
    if (stream == nullptr) {
      judge_.report(std::string{call} + " named the stream handle " + std::to_string(s.handle) +
                    ", which is dead");
    }
    return stream;
  }

  void note_use(simulation::stream& s, const void* p, std::size_t bytes) {
    const simulation::tick_count tick = streams_.tick(s);
    judge_.used(p, bytes, {s.lane, tick}, s.clock);
  }

  /// Makes the bytes be used by the next node that `s` captures.
  void capture_use(simulation::stream& s, const void* p, std::size_t bytes) {
    simulation::capture_member& part = *captures_.member(s);
    check_capture("used in a capture", part, p, bytes);
    part.position = {graphs_.append(*part.running->graph, part.position, {p, bytes})};
  }

  void check_capture(const char* how, const simulation::capture_member& part, const void* p,
                     std::size_t bytes) {
    if (simulation::graph_book::names_unordered(*part.running->graph, {p, bytes}, part.position)) {
      judge_.report(std::string{how} + ": bytes that a node not ordered before uses");
    }
  }

  /// Bytes that a graph uses are its own until it is over.
  void check_graphs(const char* how, const void* p, std::size_t bytes,
                    const simulation::graph_content* except = nullptr) {
    if (graphs_.names({p, bytes}, except)) {
      judge_.report(std::string{how} + ": bytes that a graph uses which may still run");
    }
  }

  void let_go(std::uint64_t number) {
    const std::lock_guard lock{mutex_};
    held_graphs_.erase(number);
    tell_unless_late();
  }

  void tell_all() {
    for (const auto& ending : graphs_.take_endings()) {
      streams_.host_sees(ending.clock);
      ending.watcher.over(ending.watcher.data);
    }
  }

  void tell_unless_late() {
    if (!options_.tells_late && !options_.tells_at_rest) {
      tell_all();
    }
  }

  [[nodiscard]] simulation::moment_ptr submit_record(simulation::stream& s) {
    streams_.tick(s);
    auto recorded = std::make_shared<simulation::moment>();
    recorded->clock = s.clock;
    recorded->source = &s;
    work_.submit(s, {nullptr, recorded});
    return recorded;
  }

  void submit_wait(simulation::stream& s, const simulation::moment_ptr& awaited) {
    s.clock.join(awaited->clock);
    work_.submit(s, {awaited, nullptr});
  }

  void open_gates() {
    for (const auto& [number, opening] : closed_gates_) {
      opening->reached = true;
    }
    closed_gates_.clear();
    gate_opened_.notify_all();
  }

  /// Calls `run` until it says that all is done. Returns false for a deadlock.
  template <typename Run>
  bool wait_until(lock_type& lock, Run run) {
    while (!run()) {
      switch (options_.on_blocked_wait) {
        case blocked_wait::is_violation:
          judge_.report("the host waits for work behind a closed gate: a deadlock");
          return false;
        case blocked_wait::opens_gates:
          open_gates();
          break;
        case blocked_wait::waits_for_open:
          gate_opened_.wait(lock);
          break;
      }
    }
    return true;
  }

  bool wait_for(lock_type& lock, simulation::moment& awaited) {
    if (!wait_until(lock, [&] { return work_.run_until(awaited); })) {
      return false;
    }
    streams_.host_sees(awaited.clock);
    tell_unless_late();
    return true;
  }

  bool wait_for_all(lock_type& lock) {
    if (!wait_until(lock, [&] { return work_.drain(); })) {
      return false;
    }
    streams_.host_sees_all();
    tell_unless_late();
    return true;
  }

  mutable std::mutex mutex_;
  std::condition_variable gate_opened_;
  simulated_options options_;
  simulation::address_space space_;  // of acquisitions
  simulation::address_space reserved_;
  simulation::mapped_memory mapped_;
  simulation::judge judge_;
  simulation::graph_book graphs_;  // before all that holds graphs
  simulation::stream_set streams_;
  simulation::contents contents_;
  simulated_announcements announcements_;
  simulation::capture_set captures_;
  simulation::work_queues work_;
  std::map<std::uint64_t, simulation::graph_ptr> held_graphs_;  // and executables
  simulation::call_book book_;
  std::unordered_map<std::uint64_t, simulation::moment_ptr> events_;  // nullptr: never recorded
  std::uint64_t events_made_ = 0;
  std::map<std::uint64_t, simulation::moment_ptr> closed_gates_;
  std::uint64_t gates_made_ = 0;
  std::size_t acquisitions_ = 0;
  call_hook before_;
  call_hook after_;
};

}  // namespace pagesift
