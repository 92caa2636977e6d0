// From the configuration of flows to connections and their subflows, and when each starts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulation/options.hpp"
#include "simulation/stack.hpp"

namespace fabric {

// Throws std::invalid_argument for more than six bits.
std::uint8_t checked_dscp(std::uint8_t dscp);

// Throws std::invalid_argument for flows that cannot exist.
void add_flows(Tables& tables, Network& network, const std::vector<FlowConfig>& flows);

// The timeout before a round trip was measured. Unless it is given, connections that are open when their data comes
// have the timeout that a handshake on the idle path would give (RFC 6298, section 2).
Time first_rto(const TransportOptions& options, const Network& network, const Subflow& subflow);

// The partition of the host that sends the connection's data.
std::size_t partition_of(const Stack& stack, std::uint32_t connection);

// Starts the connections of a partition that wait for no other. One alarm stands for all of them.
class FlowStarts {
 public:
  FlowStarts(Stack& stack, const std::vector<FlowConfig>& flows, std::size_t partition);

  void start_due(Time now);

 private:
  Stack& stack_;
  std::vector<std::uint32_t> by_start_;
  std::size_t started_ = 0;  // of `by_start_`
};

}  // namespace fabric
