// The two senders of pFabric (Alizadeh et al., SIGCOMM 2013, section 4.3). minTCP has TCP's slow start and additive
// increase; its rules for timeouts and probes are in transport/loss_recovery.cpp. LineRate always has its first window,
// a bandwidth-delay product, in the network.
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline double no_increase(Paths /*paths*/, std::size_t /*i*/) { return 0; }
inline double same_window(Paths paths, std::size_t i) { return paths[i].window; }

inline constexpr CongestionControl kMinTcp{"mintcp", reno_increase, half};
inline constexpr CongestionControl kLineRate{"linerate", no_increase, same_window, false, true};

}  // namespace fabric
