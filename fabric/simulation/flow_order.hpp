// When flows begin: at a time, or after another flow has ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/network.hpp"
#include "core/units.hpp"
#include "simulation/options.hpp"

namespace fabric {

// Of one flow. `start` counts from the end of the flow that it waits for, if there is one.
struct FlowBegin {
  Time start = 0;
  std::uint32_t then = kNone;  // the flow that waits for this one
};

// Throws std::invalid_argument for flows in an impossible order.
inline std::vector<FlowBegin> flow_order(const std::vector<FlowConfig>& flows) {
  std::vector<FlowBegin> out;
  for (const FlowConfig& flow : flows) {
    const auto number = static_cast<std::uint32_t>(out.size());
    if (flow.start < 0) throw std::invalid_argument("a flow starts before the simulation does");
    if (flow.after != kNone) {
      if (flow.after >= number) throw std::invalid_argument("a flow waits for one that comes later");
      FlowBegin& awaited = out[flow.after];
      if (awaited.then != kNone) throw std::invalid_argument("two flows wait for the same one");
      awaited.then = number;
    }
    if (flow.subflows.empty()) throw std::invalid_argument("a flow has no subflow");
    out.push_back({.start = flow.start});
  }
  return out;
}

// The partition of the host that sends the flow's data.
inline std::size_t partition_of(const FlowConfig& flow, const Partitions& partitions) {
  return partitions.several() ? partitions.of_nic(flow.subflows.front().source) : 0;
}

// The flows of this partition that wait for no other, in the order of their times.
inline std::vector<std::uint32_t> by_start(const std::vector<FlowConfig>& flows, const Partitions& partitions,
                                           std::size_t partition) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t number = 0; number < flows.size(); ++number) {
    if (flows[number].after == kNone && partition_of(flows[number], partitions) == partition) out.push_back(number);
  }
  std::ranges::stable_sort(out, {}, [&](std::uint32_t number) { return flows[number].start; });
  return out;
}

}  // namespace fabric
