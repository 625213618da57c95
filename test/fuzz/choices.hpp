// Where a player's decisions come from: the bytes of an input, or random numbers without end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace fuzz {

class choices {
 public:
  choices() = default;
  choices(const choices&) = delete;
  choices& operator=(const choices&) = delete;
  virtual ~choices() = default;

  /// Whether there is anything left to decide by.
  [[nodiscard]] virtual bool more() const = 0;

  /// A number below `bound`; 0 once nothing is left.
  [[nodiscard]] virtual std::size_t below(std::size_t bound) = 0;

  [[nodiscard]] bool one_in(std::size_t bound) { return below(bound) == bound - 1; }
};

/// Decides by the bytes of an input, as few of them as the bound needs.
class byte_choices final : public choices {
 public:
  byte_choices(const std::uint8_t* data, std::size_t bytes) : at_{data}, end_{data + bytes} {}

  [[nodiscard]] bool more() const override { return at_ != end_; }

  [[nodiscard]] std::size_t below(std::size_t bound) override {
    std::size_t value = 0;
    for (std::size_t reach = 1; reach < bound && at_ != end_; reach *= 256) {
      value = value * 256 + *at_++;
    }
    return value % bound;
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

class random_choices final : public choices {
 public:
  explicit random_choices(std::uint64_t seed) : random_{seed} {}

  [[nodiscard]] bool more() const override { return true; }
  [[nodiscard]] std::size_t below(std::size_t bound) override {
    return static_cast<std::size_t>(random_() % bound);
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace fuzz
