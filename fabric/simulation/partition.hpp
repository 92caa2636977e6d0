// The simulated hosts and the switches of one partition of the network: all of them, unless the network has several. It
// hands every event of the network to the transport that it concerns.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "simulation/datagrams.hpp"
#include "simulation/options.hpp"
#include "simulation/stack.hpp"
#include "simulation/tcp.hpp"

namespace fabric {

// What partitions share.
struct Tables {
  Tables(const TransportOptions& transport, Network& network, const std::vector<FlowConfig>& flows,
         const std::vector<DatagramConfig>& wanted)
      : options(transport), contents(network.pool().capacity()), tcp(transport, network, flows),
        datagrams(datagram_sources(transport, network, wanted)) {}

  TransportOptions options;
  PacketContents contents;
  TcpTables tcp;
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
  [[nodiscard]] Tcp& tcp() { return tcp_; }
  [[nodiscard]] const Tcp& tcp() const { return tcp_; }

 private:
  friend class Network;

  // Network's Hosts:
  void deliver(PacketId id, Time due);
  void dropped(PacketId id, PortId port, Time when) { stack_.dropped(id, port, when); }
  void alarm(PacketId id, Time due);
  void expect(PacketId id) const { tcp_.expect(id); }
  void expect_soon(PacketId id) const { tcp_.expect_soon(id); }

  struct Asleep;
  void run_with_stalls(Time limit);
  void wake_up(Time now);

  Stack stack_;
  Datagrams datagrams_;
  Tcp tcp_;
  Time slept_until_ = 0;  // where the machine stalls: everything up to it has happened
};

}  // namespace fabric
