// Memory of the host, which must never be taken for the device's when it runs short.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace squares {

/// The host has too little memory for the arrays.
class host_memory_short : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws `host_memory_short` where the system says that `arrays` arrays of `count` doubles do not
/// fit. It grants memory that it does not have, and ends the program that then uses it.
void require_host_memory(std::size_t arrays, std::size_t count);

/// Doubles in the host's memory, not initialised.
class host_array {
 public:
  /// \throws host_memory_short
  explicit host_array(std::size_t count);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] double* data() noexcept { return data_.get(); }
  [[nodiscard]] const double* data() const noexcept { return data_.get(); }
  [[nodiscard]] double& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] double operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  std::unique_ptr<double[]> data_;
  std::size_t size_;
};

}  // namespace squares
