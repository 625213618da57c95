// What checked mode says about a mistake in the use of a pool.
#pragma once

#include <pagesift/back/block.hpp>
#include <pagesift/core/call_stack.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace pagesift {

/// The mistakes that checked mode tells apart.
enum class misuse : unsigned char {
  double_free,      ///< freed before, and not handed out again since
  foreign_pointer,  ///< no checked pool handed it out, or its memory has been given back since
  inner_pointer,    ///< points into a block, not to its beginning
  other_pool,       ///< a block of another checked pool
  wrong_size,       ///< the size given at the free is not the one that was asked for
  wrong_device,     ///< the stream belongs to another device than the pool
  other_stream,     ///< freed on another stream (only where `report_stream_changes` asks for it)
  underrun,         ///< written before the beginning of a block
  overrun,          ///< written behind the end of a block
  use_after_free,   ///< written after the free
  leak              ///< still in use
};

/// One mistake. What is not known is null, 0 or empty; streams are named by id, `quiet_stream`
/// being a call that names none.
struct misuse_report {
  misuse kind = misuse::foreign_pointer;
  const void* address = nullptr;  ///< that the user was given, or gave
  const void* block = nullptr;    ///< beginning of the block concerned, where there is one
  std::size_t bytes = 0;          ///< that were asked for when the block was handed out
  std::size_t given_bytes = 0;    ///< the size in the call that was wrong

  stream_id allocated_on = quiet_stream;
  stream_id freed_on = quiet_stream;
  stream_id noticed_on = quiet_stream;  ///< stream of the call that found out

  call_stack allocated_at;
  call_stack freed_at;
  call_stack noticed_at;

  /// Of damage: where the first wrong byte is, counted from the beginning of the block (before it:
  /// negative), and how many are wrong among those that were looked at.
  std::ptrdiff_t first_wrong_offset = 0;
  std::size_t wrong_bytes = 0;

  /// A sentence, and the call stacks below it. \throws std::bad_alloc
  [[nodiscard]] std::string to_text() const;
};

namespace misuse_text {

inline std::string address_of(const void* p) {
  char text[2 + 2 * sizeof(std::uintptr_t) + 1];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(p)));
  return text;
}

inline std::string stream_name(stream_id id) {
  return id == quiet_stream ? "no particular stream" : "stream " + std::to_string(id);
}

inline std::string damage(const misuse_report& r) {
  return std::to_string(r.wrong_bytes) + " bytes are wrong, the first at offset " +
         std::to_string(r.first_wrong_offset);
}

/// What is wrong, without the block's history.
inline std::string finding(const misuse_report& r) {
  std::string p = address_of(r.address);
  switch (r.kind) {
    case misuse::double_free:
      return p + " was freed twice";
    case misuse::foreign_pointer:
      return p + " was freed, but no checked pool has such a block in use";
    case misuse::inner_pointer:
      return p + " was freed, which points into the block at " + address_of(r.block);
    case misuse::other_pool:
      return p + " was freed, which is a block of another pool";
    case misuse::wrong_size:
      return p + " was freed with a size of " + std::to_string(r.given_bytes) + " bytes";
    case misuse::wrong_device:
      return std::to_string(r.given_bytes) + " bytes were asked for, or freed at " + p +
             ", on a stream of another device than the pool's";
    case misuse::other_stream:
      return p + " was freed on " + stream_name(r.noticed_on);
    case misuse::underrun:
      return "something wrote before the beginning of " + p + ": " + damage(r);
    case misuse::overrun:
      return "something wrote behind the end of " + p + ": " + damage(r);
    case misuse::use_after_free:
      return "something wrote to " + p +
             " after it was freed, or was not waited for by the stream it was freed on: " +
             damage(r);
    case misuse::leak:
      return p + " is still in use";
  }
  return p;
}

inline std::string stack(const char* title, const call_stack& frames) {
  return frames.empty() ? std::string{} : std::string{"  "} + title + ":\n" + frames.to_text();
}

}  // namespace misuse_text

inline std::string misuse_report::to_text() const {
  using namespace misuse_text;
  std::string text = "pagesift: " + finding(*this);
  if (block != nullptr) {
    text += "; the block has " + std::to_string(bytes) + " bytes and was allocated on " +
            stream_name(allocated_on);
    if (!freed_at.empty() || freed_on != quiet_stream) {
      text += ", freed on " + stream_name(freed_on);
    }
  }
  return text + ".\n" + stack("allocated at", allocated_at) + stack("freed at", freed_at) +
         stack("noticed at", noticed_at);
}

}  // namespace pagesift
