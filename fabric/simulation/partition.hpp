// The simulated hosts and the switches of one partition of the network: all of them, unless the network has several. It
// starts flows, and hands every event of the network to the transport.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "simulation/datagrams.hpp"
#include "simulation/options.hpp"
#include "simulation/stack.hpp"
#include "simulation/transport.hpp"

namespace fabric {

// What partitions share.
struct Tables {
  Tables(const TransportOptions& wanted_options, Network& network, const std::vector<FlowConfig>& flows,
         const std::vector<DatagramConfig>& wanted)
      : options(wanted_options), order(flow_order(flows)), contents(network.pool().capacity()),
        transport(options.transport->make(options, network, flows)), datagrams(datagram_sources(options, network, wanted)) {}

  TransportOptions options;
  std::vector<FlowBegin> order;
  PacketContents contents;
  std::unique_ptr<TransportState> transport;
  std::vector<DatagramSource> datagrams;
};

class Partition {
 public:
  // `tables` must outlive the partition. Noise and agents need the whole network.
  Partition(Tables& tables, Network part, const std::vector<FlowConfig>& flows, std::size_t number,
            const std::optional<NoiseConfig>& noise = {}, std::optional<AgentConfig> agent = {});

  // Carries out everything up to and including this instant.
  void run_until(Time limit);
  // Brings queues and counters to this instant, for reading.
  void settle(Time now) { stack_.network.settle(now); }

  [[nodiscard]] Network& network() { return stack_.network; }
  [[nodiscard]] const Network& network() const { return stack_.network; }
  [[nodiscard]] const Stack& stack() const { return stack_; }
  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] const Transport& transport() const { return *transport_; }

 private:
  friend class Network;

  // Network's Hosts:
  void deliver(PacketId id, Time due);
  void dropped(PacketId id, PortId port, Time when) { stack_.dropped(id, port, when); }
  void left(PortId port, Time when) { stack_.left(port, when); }
  void alarm(PacketId id, Time due);
  void expect(PacketId id) const { transport_->expect(id); }
  void expect_soon(PacketId id) const { transport_->expect_soon(id); }

  void start_due(Time now);

  struct Asleep;
  void run_with_stalls(Time limit);
  void wake_up(Time now);

  Stack stack_;
  Datagrams datagrams_;
  std::unique_ptr<Transport> transport_;
  std::span<const FlowBegin> order_;
  std::vector<std::uint32_t> by_start_;  // flows that wait for no other; one alarm stands for all of them
  std::size_t started_ = 0;              // of those
  Time slept_until_ = 0;  // where the machine stalls: everything up to it has happened
};

}  // namespace fabric
