// LIA, linked increases: RFC 6356, section 3, with all segments of one size.
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline double lia_increase(Paths paths, std::size_t i) {
  if (!is_known(paths[i])) return reno_increase(paths, i);
  double best = 0;
  double total = 0;
  for (const PathState& path : paths) {
    if (!is_known(path)) continue;
    best = std::max(best, rate(path) / path.rtt_s);
    total += rate(path);
  }
  return std::min(best / (total * total), 1.0 / paths[i].window);
}

inline constexpr CongestionControl kLia{"lia", lia_increase, half};

}  // namespace fabric
