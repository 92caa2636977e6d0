// The scheduler of upstream Linux: binds data early, 64 kB at a time, to the subflow that would empty its buffer first;
// if that one has no room, it waits (mptcp_subflow_get_send, net/mptcp/protocol.c).
#pragma once

#include "simulation/schedulers/scheduler.hpp"

namespace fabric {

inline std::uint32_t first_to_drain(std::span<const SubflowView> subflows, std::uint32_t /*last*/) {
  const auto linger = [](const SubflowView& of) { return of.rate_pps > 0 ? of.held_pkts / of.rate_pps : 0.0; };
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < subflows.size(); ++i) {
    if (linger(subflows[i]) < linger(subflows[best])) best = i;
  }
  return subflows[best].takes ? best : kNone;
}

inline constexpr Scheduler kBurst{"burst", first_to_drain, 65428};

}  // namespace fabric
