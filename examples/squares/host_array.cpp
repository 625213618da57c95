#include "host_array.hpp"

#include <fstream>
#include <new>
#include <optional>

namespace squares {
namespace {

/// Bytes that programs can still have, as Linux tells.
std::optional<std::size_t> available_bytes() {
  std::ifstream information{"/proc/meminfo"};
  std::string name;
  std::size_t kibibytes = 0;
  std::string unit;
  while (information >> name >> kibibytes && std::getline(information, unit)) {
    if (name == "MemAvailable:") {
      return kibibytes * 1024;
    }
  }
  return std::nullopt;
}

}  // namespace

void require_host_memory(std::size_t arrays, std::size_t count) {
  const std::optional<std::size_t> available = available_bytes();
  if (available && count > *available / sizeof(double) / arrays) {
    throw host_memory_short{"too little host memory: " + std::to_string(arrays) + " arrays of " +
                            std::to_string(count) + " doubles do not fit in the " +
                            std::to_string(*available) + " bytes that are available"};
  }
}

host_array::host_array(std::size_t count) : data_{new (std::nothrow) double[count]}, size_{count} {
  if (data_ == nullptr) {
    throw host_memory_short{"too little host memory: the host refuses an array of " +
                            std::to_string(count) + " doubles"};
  }
}

}  // namespace squares
