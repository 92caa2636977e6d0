// Shared by the parts of the Python module that have a network: reading a NetworkPlan, its counters.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>

#include "bindings.hpp"
#include "core/network.hpp"

namespace fabric {

// Source and destination address, protocol, source and destination port.
using FiveTupleNumbers = std::tuple<std::uint32_t, std::uint32_t, std::uint8_t, std::uint16_t, std::uint16_t>;

inline FiveTuple five_tuple(const FiveTupleNumbers& numbers) {
  const auto& [src, dst, proto, sport, dport] = numbers;
  return {src, dst, proto, sport, dport};
}

// Throws std::length_error for more ports than a packet can hold.
Path path_along(std::span<const PortId> ports);

// Reads fabric.plan.NetworkPlan. Throws std::invalid_argument on lengths that do not fit together.
NetworkConfig network_config(const nb::object& plan);

void add_port_counters(nb::dict& out, std::span<const PortCounters> ports, std::span<const std::uint32_t> queued);

}  // namespace fabric
