// One segment to each subflow in turn (Paasch et al., CSWS 2014, section 3.1).
#pragma once

#include "simulation/schedulers/scheduler.hpp"

namespace fabric {

inline std::uint32_t next_in_turn(std::span<const SubflowView> subflows, std::uint32_t last) {
  const auto count = static_cast<std::uint32_t>(subflows.size());
  for (std::uint32_t step = 1; step <= count; ++step) {
    const std::uint32_t i = (last + step) % count;
    if (subflows[i].takes) return i;
  }
  return kNone;
}

inline constexpr Scheduler kRoundRobin{"round_robin", next_in_turn};

}  // namespace fabric
