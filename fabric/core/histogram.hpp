// A histogram of nanoseconds with 1/16 relative resolution: 16 bins an octave, 1 ns to 2^40 ns.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace fabric {

class Histogram {
 public:
  static constexpr int kSubBits = 4;
  static constexpr int kOctaves = 40;
  static constexpr std::size_t kBins = std::size_t{kOctaves - kSubBits + 1} << kSubBits;

  void record(std::int64_t ns) { ++bins_[bin(ns)]; }

  [[nodiscard]] const std::array<std::uint64_t, kBins>& bins() const { return bins_; }

  static std::size_t bin(std::int64_t ns) {
    const auto value = static_cast<std::uint64_t>(ns < 0 ? 0 : ns);
    if (value < (1U << kSubBits)) return static_cast<std::size_t>(value);
    const int octave = static_cast<int>(std::bit_width(value)) - 1 - kSubBits;
    const std::size_t i = (static_cast<std::size_t>(octave) << kSubBits) + (value >> octave);
    return i < kBins ? i : kBins - 1;
  }

  // Smallest value that falls into bin i.
  static std::uint64_t lower_edge(std::size_t i) {
    if (i < (1U << kSubBits)) return i;
    const std::size_t octave = (i >> kSubBits) - 1;
    return ((i & ((1U << kSubBits) - 1)) + (1U << kSubBits)) << octave;
  }

 private:
  std::array<std::uint64_t, kBins> bins_{};
};

}  // namespace fabric
