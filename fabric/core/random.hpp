// Random numbers by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): eight bytes of state, so that every
// port has its own generator, and the draws of one port do not affect another.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace fabric {

class Random {
 public:
  // Every pair of `seed` and `stream` is a sequence of its own.
  constexpr Random(std::uint32_t seed, std::uint32_t stream)
      : state_(scrambled(std::uint64_t{seed} << 32 | stream)) {}

  constexpr std::uint64_t next() { return scrambled(state_ += 0x9E3779B97F4A7C15U); }

  // Uniform in [0, 1), in steps of 2^-53.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Uniform in [0, n), with a bias below n / 2^32.
  constexpr std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((next() >> 32) * n >> 32);
  }

 private:
  static constexpr std::uint64_t scrambled(std::uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
  }

  std::uint64_t state_;
};

// The number below which `Random::next` stays with this probability; exact to 2^-53.
inline std::uint64_t threshold(double probability) {
  if (!(probability >= 0 && probability < 1)) {
    throw std::invalid_argument("a probability of loss must be at least 0 and below 1");
  }
  return static_cast<std::uint64_t>(std::ldexp(probability, 64));
}

}  // namespace fabric
