// Fully coupled: one window for all subflows together, which moves away from paths with loss (Wischik et al., NSDI
// 2011, section 2.2; Kelly and Voice, 2005).
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline double coupled_increase(Paths paths, std::size_t /*i*/) { return 1.0 / total_window(paths); }

inline double coupled_after_loss(Paths paths, std::size_t i) {
  return std::max(kMinWindow, paths[i].window - total_window(paths) / 2);
}

inline constexpr CongestionControl kCoupled{"coupled", coupled_increase, coupled_after_loss};

}  // namespace fabric
