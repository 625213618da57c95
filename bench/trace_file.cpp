#include "trace_file.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bench {
namespace {

using fields = std::vector<std::string>;

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

fields split(const std::string& line) {
  fields found;
  for (std::size_t first = 0; first <= line.size();) {
    const std::size_t end = std::min(line.find(',', first), line.size());
    found.push_back(trimmed(line.substr(first, end - first)));
    first = end + 1;
  }
  return found;
}

/// Where in a line the columns stand.
class columns {
 public:
  explicit columns(const fields& header) {
    op_ = find(header, "op", "action");
    id_ = find(header, "id", "pointer");
    bytes_ = find(header, "bytes", "size");
    stream_ = find(header, "stream", "stream");
    for (const auto& [place, name] : {std::pair{op_, "op"}, {id_, "id"}, {bytes_, "bytes"}}) {
      if (place == missing) {
        throw std::runtime_error{std::string{"the header has no column '"} + name + "'"};
      }
    }
  }

  [[nodiscard]] std::string op(const fields& line) const { return lower_case(field(line, op_)); }
  [[nodiscard]] std::string id(const fields& line) const { return field(line, id_); }
  [[nodiscard]] std::string stream(const fields& line) const {
    return stream_ == missing ? "" : field(line, stream_);
  }
  [[nodiscard]] std::size_t bytes(const fields& line) const {
    const std::string text = field(line, bytes_);
    std::size_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error != std::errc{} || end != text.data() + text.size()) {
      throw std::runtime_error{"'" + text + "' is not a number of bytes"};
    }
    return bytes;
  }

 private:
  static constexpr std::size_t missing = std::numeric_limits<std::size_t>::max();

  static std::size_t find(const fields& header, const char* name, const char* other_name) {
    for (std::size_t i = 0; i < header.size(); ++i) {
      const std::string have = lower_case(header[i]);
      if (have == name || have == other_name) {
        return i;
      }
    }
    return missing;
  }

  static std::string field(const fields& line, std::size_t place) {
    if (place >= line.size()) {
      throw std::runtime_error{"it has " + std::to_string(line.size()) +
                               " fields, fewer than the "
                               "header"};
    }
    return line[place];
  }

  std::size_t op_ = missing;
  std::size_t id_ = missing;
  std::size_t bytes_ = missing;
  std::size_t stream_ = missing;
};

/// Turns lines into operations.
class reader {
 public:
  explicit reader(const fields& header) : columns_{header} {}

  void read(const fields& line) {
    const std::string op = columns_.op(line);
    if (op == "allocate") {
      allocate(columns_.id(line), columns_.bytes(line), stream_of(columns_.stream(line)));
    } else if (op == "free") {
      free(columns_.id(line), stream_of(columns_.stream(line)));
    } else if (op != "allocate failure") {
      throw std::runtime_error{"'" + op + "' is neither allocate nor free"};
    }
  }

  [[nodiscard]] trace finish() {
    while (!live_.empty()) {
      free(std::string{live_.begin()->first}, live_.begin()->second.stream);
    }
    return trace_;
  }

 private:
  void allocate(const std::string& id, std::size_t bytes, std::size_t stream) {
    const std::size_t slot = empty_slots_.take(trace_);
    const operation request{true, slot, bytes, stream};
    if (!live_.emplace(id, request).second) {
      throw std::runtime_error{"block '" + id + "' is in use already"};
    }
    trace_.operations.push_back(request);
  }

  void free(const std::string& id, std::size_t stream) {
    const auto found = live_.find(id);
    if (found == live_.end()) {
      throw std::runtime_error{"block '" + id + "' is not in use"};
    }
    operation release = found->second;
    release.allocates = false;
    release.stream = stream;
    trace_.operations.push_back(release);
    empty_slots_.give(release.slot);
    live_.erase(found);
  }

  std::size_t stream_of(const std::string& name) {
    if (name.empty() || name == "0" || name == "0x0") {
      return 0;
    }
    const auto [place, is_new] = streams_.emplace(name, trace_.streams);
    trace_.streams += is_new ? 1 : 0;
    return place->second;
  }

  columns columns_;
  trace trace_;
  std::unordered_map<std::string, operation> live_;  // by id
  std::unordered_map<std::string, std::size_t> streams_;
  empty_slots empty_slots_;
};

/// \param number of the line that was read last
trace read_lines(std::ifstream& file, std::size_t& number) {
  std::string line;
  if (!std::getline(file, line)) {
    throw std::runtime_error{"the file is empty"};
  }
  number = 1;
  reader lines{split(line)};
  while (std::getline(file, line)) {
    ++number;
    if (!trimmed(line).empty()) {
      lines.read(split(line));
    }
  }
  return lines.finish();
}

}  // namespace

trace read_trace(const std::string& path) {
  std::ifstream file{path};
  if (!file) {
    throw std::runtime_error{path + " cannot be opened"};
  }
  std::size_t number = 0;
  trace found;
  try {
    found = read_lines(file, number);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error{path + ", line " + std::to_string(number) + ": " + error.what()};
  }
  if (found.operations.empty()) {
    throw std::runtime_error{path + " holds no request"};
  }
  return found;
}

}  // namespace bench
