// One packet per window, and half the window after a loss (RFC 5681). Subflows are not coupled.
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline constexpr CongestionControl kReno{"reno", reno_increase, half};

}  // namespace fabric
