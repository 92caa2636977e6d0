// When a CPU, or a whole machine, stands still: a random sequence of stalls that a law and a seed determine. Real stalls
// (realtime/stall_maker.hpp) and simulated ones (simulation/machine_noise.hpp) are drawn from the same sequence.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "core/random.hpp"
#include "core/units.hpp"

namespace fabric {

// A stall lasts from `least` to `most`, uniformly; stalls begin `every` apart on average. The time from the end of one
// to the beginning of the next is exponential, so stalls never overlap.
struct StallLaw {
  Time every = 0;
  Time least = 0;
  Time most = 0;

  [[nodiscard]] Time mean() const { return least + (most - least) / 2; }
  [[nodiscard]] double share() const { return static_cast<double>(mean()) / static_cast<double>(every); }
};

struct Stall {
  Time begin = kNever;
  Time end = kNever;

  [[nodiscard]] Time length() const { return end - begin; }
};

// Throws std::invalid_argument for a law that leaves a machine less than half of its time: the run would then measure
// the kernel's limit on real-time threads (95 %) as well.
inline const StallLaw& checked(const StallLaw& law) {
  constexpr Time kMostStall = 500 * kMillisecond;
  if (law.least <= 0 || law.most < law.least) {
    throw std::invalid_argument("a stall's shortest length must be above 0 and at most the longest");
  }
  if (law.most > kMostStall) throw std::invalid_argument("a stall lasts 500 ms at most");
  if (law.every < 2 * law.mean()) throw std::invalid_argument("stalls must take at most half of the time");
  return law;
}

class Stalls {
 public:
  Stalls(const StallLaw& law, std::uint32_t seed, std::uint32_t stream) : law_(checked(law)), random_(seed, stream) {}

  // The next one, after all before it. Times are whole microseconds, so that the last bit of a logarithm, which
  // may differ between machines, changes nothing.
  Stall next() {
    const double gap = -std::log1p(-uniform()) * static_cast<double>(law_.every - law_.mean());
    const double length = static_cast<double>(law_.least) + uniform() * static_cast<double>(law_.most - law_.least);
    const Time begin = end_ + whole(gap) + kMicrosecond;
    end_ = begin + whole(length);
    return {begin, end_};
  }

 private:
  // In [0, 1).
  double uniform() { return static_cast<double>(random_.next() >> 11) * 0x1p-53; }
  static Time whole(double time) { return static_cast<Time>(time / static_cast<double>(kMicrosecond)) * kMicrosecond; }

  StallLaw law_;
  Random random_;
  Time end_ = 0;
};

}  // namespace fabric
