// What a pool reports about itself.
#pragma once

#include <pagesift/core/size_class.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pagesift {

/// Counters of one size class. Classes that were never asked for are left out of a report.
struct class_stats {
  class_index index = 0;
  std::size_t block_bytes = 0;   ///< the class's block size; a large block may have more
  std::size_t in_use_bytes = 0;  ///< capacity of its blocks in users' hands
  std::size_t in_use_blocks = 0;
  std::uint64_t hits = 0;    ///< requests served from idle memory
  std::uint64_t misses = 0;  ///< requests for which the pool took memory from the backend
};

/// A pool's counters at one moment. Invariants: held == in_use + idle; no peak is below its value;
/// the classes' in_use_bytes sum to in_use.
struct pool_stats {
  std::size_t held = 0;    ///< bytes taken from the backend
  std::size_t in_use = 0;  ///< bytes in users' hands, counted in block sizes
  std::size_t idle = 0;    ///< held minus in use
  /// Of both, bytes of blocks kept for captured graphs: handed out on a capturing stream, or freed
  /// on one, and the graph is not over. Once given back they are idle, but serve that capture only.
  std::size_t captured = 0;
  std::size_t peak_held = 0;
  /// Never below the true peak, never above `peak_held`; the true peak where one thread used the
  /// pool on one stream or `pool_options::exact_peaks` is set. Else the peak of each thread on each
  /// stream counts as if all had been at the same moment, in every stretch between two calls that
  /// go beyond caches.
  std::size_t peak_in_use = 0;
  std::size_t largest_idle_block = 0;  ///< bytes of the longest idle piece, of any stream
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t backend_allocations = 0;  ///< successful calls that took memory from the backend
  std::uint64_t backend_releases = 0;     ///< successful calls that gave memory back
  std::uint64_t events_recorded = 0;
  std::uint64_t stream_waits = 0;    ///< times one stream was made to wait for another
  std::uint64_t fences = 0;          ///< times the whole context was waited for
  std::uint64_t rejected_frees = 0;  ///< frees of a pointer the pool did not hand out
  std::size_t streams = 0;           ///< streams the pool remembers: calls named them
  std::size_t live_events = 0;       ///< backend events in existence
  std::vector<class_stats> classes;

  /// Several lines for people.
  [[nodiscard]] std::string to_text() const;
  /// One JSON object; keys are the members' names, `classes` an array.
  [[nodiscard]] std::string to_json() const;
};

namespace statistics_format {

/// Calls `append(name, value)` for each counter, in the order of the members.
template <typename Append>
void for_each_counter(const pool_stats& s, Append&& append) {
  append("held", s.held);
  append("in_use", s.in_use);
  append("idle", s.idle);
  append("captured", s.captured);
  append("peak_held", s.peak_held);
  append("peak_in_use", s.peak_in_use);
  append("largest_idle_block", s.largest_idle_block);
  append("hits", s.hits);
  append("misses", s.misses);
  append("backend_allocations", s.backend_allocations);
  append("backend_releases", s.backend_releases);
  append("events_recorded", s.events_recorded);
  append("stream_waits", s.stream_waits);
  append("fences", s.fences);
  append("rejected_frees", s.rejected_frees);
  append("streams", s.streams);
  append("live_events", s.live_events);
}

template <typename Append>
void for_each_counter(const class_stats& c, Append&& append) {
  append("index", c.index);
  append("block_bytes", c.block_bytes);
  append("in_use_bytes", c.in_use_bytes);
  append("in_use_blocks", c.in_use_blocks);
  append("hits", c.hits);
  append("misses", c.misses);
}

template <typename Counters>
std::string json_members(const Counters& counters) {
  std::string json;
  for_each_counter(counters, [&json](const char* name, auto value) {
    json += json.empty() ? "\"" : ", \"";
    json += std::string{name} + "\": " + std::to_string(value);
  });
  return json;
}

}  // namespace statistics_format

inline std::string pool_stats::to_text() const {
  std::string text;
  statistics_format::for_each_counter(*this, [&text](const char* name, auto value) {
    std::string label{name};
    label.resize(20, ' ');
    text += label + ' ' + std::to_string(value) + '\n';
  });
  for (const class_stats& c : classes) {
    text += "class of " + std::to_string(c.block_bytes) +
            " bytes: " + std::to_string(c.in_use_blocks) + " blocks in use, " +
            std::to_string(c.hits) + " hits, " + std::to_string(c.misses) + " misses\n";
  }
  return text;
}

inline std::string pool_stats::to_json() const {
  std::string json = "{" + statistics_format::json_members(*this) + ", \"classes\": [";
  for (std::size_t i = 0; i < classes.size(); ++i) {
    json += (i == 0 ? "{" : ", {") + statistics_format::json_members(classes[i]) + "}";
  }
  return json + "]}";
}

}  // namespace pagesift
