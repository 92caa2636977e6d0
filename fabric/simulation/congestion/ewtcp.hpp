// EWTCP: n subflows, each with 1/n^2 of reno's increase, together get as much as one TCP flow on a shared bottleneck
// (Honda et al., PFLDNeT 2009; Wischik et al., NSDI 2011, section 2.1).
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline double ewtcp_increase(Paths paths, std::size_t i) {
  const auto n = static_cast<double>(paths.size());
  return reno_increase(paths, i) / (n * n);
}

inline constexpr CongestionControl kEwtcp{"ewtcp", ewtcp_increase, half};

}  // namespace fabric
