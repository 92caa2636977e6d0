// All schedulers of MPTCP connections.
#pragma once

#include <array>
#include <stdexcept>
#include <string>

#include "simulation/schedulers/burst.hpp"
#include "simulation/schedulers/min_rtt.hpp"
#include "simulation/schedulers/round_robin.hpp"

namespace fabric {

inline constexpr std::array kSchedulers{&kMinRtt, &kBurst, &kRoundRobin};

inline const Scheduler& scheduler(std::string_view name) {
  for (const Scheduler* known : kSchedulers) {
    if (known->name == name) return *known;
  }
  throw std::invalid_argument("the simulator knows no scheduler '" + std::string(name) + "'");
}

}  // namespace fabric
