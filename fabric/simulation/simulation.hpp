// Simulated end hosts on the fabric, in virtual time: the same links, tables and queues as between real hosts.
//
// Simulation hands every event of the network to the part of the hosts that it concerns: Sender, Receiver,
// LossRecovery, Handshake, Lifecycle (transport/), DataScheduler (schedulers/), HostQueue, FlowStarts and datagrams.
// All their state is in Stack (state/).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulation/flows.hpp"
#include "simulation/options.hpp"
#include "simulation/stack.hpp"
#include "simulation/transport/socket_info.hpp"

namespace fabric {

class Simulation {
 public:
  Simulation(NetworkConfig network, const TransportOptions& options, const std::vector<FlowConfig>& flows,
             const std::vector<DatagramConfig>& datagrams = {}, const std::optional<NoiseConfig>& noise = {},
             std::optional<AgentConfig> agent = {});

  // Carries out everything up to and including this instant.
  void run_until(Time limit);

  // Gives a subflow other paths than the router's choice, or the paths of these ranks. Packets in the network keep
  // theirs.
  void set_path(std::uint32_t subflow, const Path& there, const Path& back);
  void set_path_ranks(std::uint32_t subflow, std::uint32_t there, std::uint32_t back);

  // Opens a subflow, if subflows join on demand. Returns false if its connection has ended or it is open already.
  bool open_subflow(std::uint32_t subflow);
  // Closes a subflow other than a connection's first; it can be opened again. Returns false if it is not open.
  bool close_subflow(std::uint32_t subflow);

  [[nodiscard]] Network& network() { return stack_.network; }
  [[nodiscard]] const Stack& stack() const { return stack_; }
  // Its clocks are to be read at `now`.
  [[nodiscard]] SocketInfo socket(std::uint32_t subflow) { return {stack_, subflow}; }
  [[nodiscard]] Time now() const { return now_; }

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
  Time now_ = 0;  // everything up to it has happened
};

}  // namespace fabric
