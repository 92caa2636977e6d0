// All transports of simulated hosts. To add one (transport.hpp), declare its record here.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include "simulation/transport.hpp"

namespace fabric {

extern const TransportKind kNdp;  // ndp.hpp

inline constexpr std::array kTransports{&kTcp, &kNdp};

// Throws std::invalid_argument for an unknown name.
inline const TransportKind& transport_kind(std::string_view name) {
  for (const TransportKind* each : kTransports) {
    if (each->name == name) return *each;
  }
  throw std::invalid_argument("there is no transport '" + std::string(name) + "'");
}

}  // namespace fabric
