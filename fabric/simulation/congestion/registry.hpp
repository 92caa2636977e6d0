// All congestion controls of the simulator, by the names of model/congestion.py.
#pragma once

#include <array>
#include <stdexcept>
#include <string>

#include "simulation/congestion/coupled.hpp"
#include "simulation/congestion/congestion.hpp"
#include "simulation/congestion/cubic.hpp"
#include "simulation/congestion/dctcp.hpp"

namespace fabric {

inline constexpr std::array kCongestionControls{&kReno,  &kCubic, &kEwtcp,  &kCoupled,  &kLia,    &kOlia,
                                               &kBalia, &kDctcp, &kMinTcp, &kLineRate, &kByAgent};

inline const CongestionControl& congestion_control(std::string_view name) {
  for (const CongestionControl* known : kCongestionControls) {
    if (known->name == name) return *known;
  }
  throw std::invalid_argument("the simulator knows no congestion control '" + std::string(name) + "'");
}

}  // namespace fabric
