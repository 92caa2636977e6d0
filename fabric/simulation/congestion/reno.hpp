// One packet a window and half after a loss (RFC 5681); of several subflows, each by itself.
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline constexpr CongestionControl kReno{"reno", reno_increase, half};

}  // namespace fabric
