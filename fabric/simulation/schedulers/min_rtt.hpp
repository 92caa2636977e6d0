// The fastest path first: among the subflows with room in their windows, the one with the smallest smoothed round-trip
// time (Paasch et al., CSWS 2014, section 3.1).
#pragma once

#include "simulation/schedulers/scheduler.hpp"

namespace fabric {

inline std::uint32_t least_rtt(std::span<const SubflowView> subflows, std::uint32_t /*last*/) {
  std::uint32_t best = kNone;
  for (std::uint32_t i = 0; i < subflows.size(); ++i) {
    if (subflows[i].takes && (best == kNone || subflows[i].srtt_s < subflows[best].srtt_s)) best = i;
  }
  return best;
}

inline constexpr Scheduler kMinRtt{"min_rtt", least_rtt};

}  // namespace fabric
