// The simulated hosts and the switches of one partition of the network: all of them, unless the network has several.
//
// Partition hands every event of the network to the part of the hosts that it concerns: Sender, Receiver, LossRecovery,
// Handshake, Lifecycle (transport/), DataScheduler (schedulers/), HostQueue, FlowStarts and datagrams.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "simulation/flows.hpp"
#include "simulation/options.hpp"
#include "simulation/stack.hpp"

namespace fabric {

class Partition {
 public:
  // `tables` must have all flows already. Noise and agents need the whole network.
  Partition(Tables& tables, Network part, const std::vector<FlowConfig>& flows, std::size_t number,
            const std::optional<NoiseConfig>& noise = {}, std::optional<AgentConfig> agent = {});

  // Carries out everything up to and including this instant.
  void run_until(Time limit);
  // Brings queues and counters to this instant, for reading.
  void settle(Time now) { stack_.network.settle(now); }

  [[nodiscard]] Stack& stack() { return stack_; }
  [[nodiscard]] const Stack& stack() const { return stack_; }
  [[nodiscard]] Network& network() { return stack_.network; }
  [[nodiscard]] const Network& network() const { return stack_.network; }

 private:
  friend class Network;

  // Network's Hosts:
  void deliver(PacketId id, Time due);
  void dropped(PacketId id, PortId port, Time when) { stack_.dropped(id, port, when); }
  void alarm(PacketId id, Time due);
  void expect(PacketId id) const;
  void expect_soon(PacketId id) const;
  void expect_room(PortId port) const;

  struct Asleep;
  void run_with_stalls(Time limit);
  void wake_up(Time now);

  Stack stack_;
  FlowStarts starts_;
  Time slept_until_ = 0;  // where the machine stalls: everything up to it has happened
};

}  // namespace fabric
