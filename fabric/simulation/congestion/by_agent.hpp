// The window is an agent's (simulation/ccp/): losses, timeouts and acknowledgements change it through the datapath.
#pragma once

#include "simulation/congestion/mintcp.hpp"

namespace fabric {

inline constexpr CongestionControl kByAgent{"ccp", no_increase, same_window, false, true, true};

}  // namespace fabric
