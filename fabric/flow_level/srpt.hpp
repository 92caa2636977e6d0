// The ideal of pFabric (Alizadeh et al., SIGCOMM 2013, section 5.2, "Ideal"): the whole fabric is one switch without
// inner limits, and a scheduler that knows all flows. Whenever a flow arrives or ends, it goes through all flows by
// increasing remaining size, and lets each send at its hosts' full rate if neither host is taken by a flow before it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace fabric {

struct FluidFlow {
  Time arrival = 0;
  Time work = 0;  // the time it needs at full rate
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
};

// When each flow has sent everything; kNever for those that have not by `limit`. Flows are in the order of arrivals.
// Throws std::invalid_argument for flows in another order, without work, or of hosts from `hosts` on.
std::vector<Time> srpt_ends(std::span<const FluidFlow> flows, std::uint32_t hosts, Time limit);

}  // namespace fabric
