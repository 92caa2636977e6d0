// DCTCP: reno that reduces its window by the share of marked packets (RFC 8257, section 3.3). The estimate of that share
// is updated in tcp.cpp.
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

// The estimate after a window of which this share was marked, with the RFC's gain of 1/16.
inline double dctcp_alpha(double alpha, double share) { return alpha + (share - alpha) / 16; }

inline double dctcp_after_marks(double window, double alpha) {
  return std::max(kMinWindow, window * (1 - alpha / 2));
}

inline constexpr CongestionControl kDctcp{"dctcp", reno_increase, half, dctcp_after_marks};

}  // namespace fabric
