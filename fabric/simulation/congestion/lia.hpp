// LIA, linked increases: RFC 6356, section 3, with all segments of one size.
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline double lia_increase(Paths paths, std::size_t i) {
  double best = 0;
  double rates = 0;
  for (const PathState& path : paths) {
    const double rate = path.window / path.rtt_s;
    best = std::max(best, rate / path.rtt_s);
    rates += rate;
  }
  return std::min(best / (rates * rates), 1.0 / paths[i].window);
}

inline constexpr CongestionControl kLia{"lia", lia_increase, half};

}  // namespace fabric
