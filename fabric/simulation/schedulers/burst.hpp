// The scheduler of upstream Linux: binds data early, 64 kB at a time, to the subflow that would empty its buffer first;
// if that one has no room, it waits. Subflows that have not joined do not count (mptcp_subflow_get_send and
// mptcp_subflow_active, net/mptcp/protocol.c).
#pragma once

#include "simulation/schedulers/scheduler.hpp"

namespace fabric {

inline std::uint32_t first_to_drain(std::span<const SubflowView> subflows, std::uint32_t /*last*/) {
  std::uint32_t best = kNone;
  for (std::uint32_t i = 0; i < subflows.size(); ++i) {
    if (!subflows[i].joined) continue;
    if (best == kNone || subflows[i].drain_s < subflows[best].drain_s) best = i;
  }
  return best != kNone && subflows[best].takes ? best : kNone;
}

inline constexpr Scheduler kBurst{"burst", first_to_drain, 65428};

}  // namespace fabric
