// TCP and MPTCP of simulated hosts, from the configuration of flows to their last acknowledgement.
//
// A connection starts with one subflow, the others join (RFC 8684, section 3.2), and it closes when all its data is
// acknowledged. Losses are handled by RFC 6675 with SACK, RFC 6582 without, RFC 6298 when no acknowledgement comes. As in
// Linux, the duplicate threshold rises to the reordering seen (tcp_reordering), a spurious fast recovery is undone by
// timestamps (RFC 3522), and a retransmission counts as lost once packets sent after it have arrived (RACK, RFC 8985).
// None of these acts where packets keep their order and arrive once.
//
// minTCP (pFabric, SIGCOMM 2013, section 4.3) reacts to timeouts alone, which are all equally long: `fixed_rto`, and a
// duplicate threshold that is never reached. After `probe_after` of them in a row it sends one probe at each timeout,
// until any acknowledgement comes. `recovery=linux` adds three things: the window shrinks in proportion to what arrives
// (RFC 6937), spurious timeouts are undone too, and the duplicate threshold falls at the end of the data (RFC 5827).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/memory.hpp"
#include "simulation/ccp/datapath.hpp"
#include "simulation/congestion/cubic.hpp"
#include "simulation/connection.hpp"
#include "simulation/options.hpp"
#include "simulation/schedulers.hpp"
#include "simulation/stack.hpp"
#include "simulation/transport.hpp"

namespace fabric {

// The state of all connections. Partitions share it: what a sender changes belongs to the partition of its host, and what
// a receiver changes to that of the other host.
class TcpTables final : public TransportState {
 public:
  // Throws std::invalid_argument for flows that cannot exist.
  TcpTables(const TransportOptions& options, Network& network, const std::vector<FlowConfig>& flows);

  [[nodiscard]] std::unique_ptr<Transport> of_partition(Stack& stack, std::optional<AgentConfig>&& agent) override;
  [[nodiscard]] std::uint32_t flows() const override { return static_cast<std::uint32_t>(connections_.size()); }
  [[nodiscard]] std::uint32_t subflows() const override { return static_cast<std::uint32_t>(subflows_.size()); }
  [[nodiscard]] FlowProgress flow(std::uint32_t number) const override;
  // What the kernel reports about a socket (tcp_get_info, net/ipv4/tcp.c).
  [[nodiscard]] SubflowReading subflow(std::uint32_t number, Time now) const override;
  [[nodiscard]] SubflowRoute route(std::uint32_t subflow) const override;
  [[nodiscard]] std::uint32_t fewest_bytes() const override;

 private:
  friend class Tcp;

  template <class T>
  using Table = std::vector<T, HugePages<T>>;

  void add_flow(Network& network, const FlowConfig& flow);
  void add_subflow(Network& network, const SubflowConfig& wanted, std::uint32_t connection);

  const TransportOptions& options_;
  Table<Connection> connections_;
  Table<Subflow> subflows_;
  Table<PathState> paths_;     // of each subflow
  Table<SubflowView> views_;   // of each subflow; empty unless a connection has several
  Table<SocketClock> clocks_;  // of each subflow
  Table<CubicPath> cubics_;    // of each subflow; empty unless a connection has CUBIC
  std::vector<WaitingSenders> waiting_;  // for room in the queue of each port
};

// TCP and MPTCP of the hosts of one partition.
class Tcp final : public Transport {
 public:
  // Throws std::invalid_argument where flows are under an agent and there is none.
  Tcp(Stack& stack, TcpTables& tables, std::optional<AgentConfig>&& agent);

  void start(std::uint32_t number, Time now) override;
  void received(PacketId id, Time now) override;
  void may_send(PortId port, Time now) override;
  void expired(Alarm what, std::uint32_t owner, PacketId id, Time now) override;
  void expect(PacketId id) const override;
  void expect_soon(PacketId id) const override;

  bool open_subflow(std::uint32_t subflow, Time now) override;
  // Throws std::invalid_argument for a subflow under an agent.
  bool close_subflow(std::uint32_t subflow, Time now) override;
  void set_path(std::uint32_t subflow, const Path& there, const Path& back) override;
  [[nodiscard]] const Agents* agents() const override { return agents_.get(); }

 private:
  class Endpoint;

  [[nodiscard]] Acknowledgement acknowledgement(PacketId id) const;

  // Connections.
  void take_over_idle(const Connection& connection);
  void first_established(Connection& connection, Time now);
  void join(Connection& connection, Time now);
  void close(Connection& connection, Time now);
  [[nodiscard]] std::vector<std::uint32_t>& idle(const Connection& connection);

  // Which subflow carries which part of a connection's data. The policy is one of schedulers.hpp.
  void distribute(Connection& connection, Time now);
  void distribute_early(Connection& connection, Time now);
  void bind(Connection& connection);
  void reinject(Connection& connection, std::uint32_t subflow, Time now);
  [[nodiscard]] SubflowView view(std::uint32_t subflow);
  [[nodiscard]] bool binds_early(const Connection& connection) const {
    return connection.multipath() && stack_.options.scheduler->burst_bytes != 0;
  }
  [[nodiscard]] bool has_data_for(Connection& connection, std::uint32_t subflow);
  [[nodiscard]] Seq take_for(Connection& connection, std::uint32_t subflow);

  // A host's own transmit queue. Senders wait for room in it and take turns, or the one with the least to send goes next
  // (`smallest_first`); acknowledgements do not wait.
  [[nodiscard]] bool is_full(PortId port, Time now) {
    return stack_.network.port(port).holds(stack_.options.nic_queue_pkts, now);
  }
  // Whether free room belongs to one of the senders that wait. An acknowledgement may come at the instant of a
  // departure; its sender must not go before a smaller one that waits.
  [[nodiscard]] bool is_claimed(PortId port) const {
    return stack_.options.smallest_first && waiting_[port].first != kNone;
  }
  void wait_for_room(PortId port, std::uint32_t subflow);
  void append_waiting(PortId port, std::uint32_t subflow);
  [[nodiscard]] std::uint32_t take_waiting(PortId port);

  // Passes events that are due to the agent, and carries out its commands.
  void serve_agent(Time now);

  Stack& stack_;
  std::span<Connection> connections_;
  std::span<Subflow> subflows_;
  std::span<PathState> paths_;
  std::span<SubflowView> views_;
  std::span<SocketClock> clocks_;
  std::span<CubicPath> cubics_;
  std::span<WaitingSenders> waiting_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> idle_;  // persistent connections by their hosts
  std::unique_ptr<Agents> agents_;                                      // of subflows whose windows an agent sets
};

}  // namespace fabric
