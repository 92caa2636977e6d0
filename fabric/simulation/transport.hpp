// The seam of transports: what simulated hosts send, and when. One transport, chosen by its record (TransportKind), has
// all flows of a simulation. It is two classes. TransportState has the state of all flows and hosts, which partitions
// share; Transport acts for the hosts of one partition, in four functions:
//     start(flow)             the flow begins
//     received(packet)        a packet has arrived
//     may_send(port)          the queue of a host has room; the transport asked for it by Stack::await_departure
//     expired(alarm, owner)   a timer of its own is due
// What they send goes through Stack::send; the content of their packets is a Segment, whose fields mean what the
// transport writes into them. A flow that has ended calls Stack::ended. tcp.hpp is TCP and MPTCP, ndp.hpp is NDP;
// whole_flows.hpp has what all transports need whose flows have no subflows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/disciplines/queue.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"
#include "simulation/ccp/agent_link.hpp"
#include "simulation/options.hpp"
#include "simulation/stack.hpp"

namespace fabric {

class Agents;

// What readers see of a flow, and of one of its subflows. A transport that has no such thing leaves the number at 0.
struct FlowProgress {
  std::uint64_t delivered_bytes = 0;  // in order
  Time started = kNever;
  Time completed = kNever;
};

struct SubflowReading {
  double window_pkts = 0;
  Time srtt = 0;
  Time rtt_variance = 0;
  std::uint32_t retransmits = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t acked_pkts = 0;
  std::uint64_t acked_bytes = 0;
  std::uint32_t unacked_pkts = 0;
  std::uint64_t unsent_bytes = 0;
  Time busy = 0;
  Time rwnd_limited = 0;
  bool established = false;
};

// Where a subflow's packets go, unless every packet has a path of its own.
struct SubflowRoute {
  NicId source = kNone;
  NicId destination = kNone;
  Path forward;
  Path back;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  Transport(Transport&&) = delete;
  Transport& operator=(Transport&&) = delete;
  virtual ~Transport() = default;

  virtual void start(std::uint32_t flow, Time now) = 0;
  // The packet is the transport's from here on.
  virtual void received(PacketId id, Time now) = 0;
  virtual void may_send(PortId port, Time now) = 0;
  // The alarm's descriptor, `id`, is released already.
  virtual void expired(Alarm what, std::uint32_t owner, PacketId id, Time now) = 0;

  // Brings into the cache what this packet or alarm, which is due soon, will need; then what that points to.
  virtual void expect(PacketId /*id*/) const {}
  virtual void expect_soon(PacketId /*id*/) const {}

  // One more subflow joins. Returns false where that is impossible: the connection has ended, or the subflow is open.
  virtual bool open_subflow(std::uint32_t /*subflow*/, Time /*now*/) { throw lacks("subflows on demand"); }
  // A subflow other than the first leaves, and the others carry what it had not delivered. It can be opened again.
  // Returns false where that is impossible: the connection has ended, or the subflow is not open.
  virtual bool close_subflow(std::uint32_t /*subflow*/, Time /*now*/) { throw lacks("subflows on demand"); }
  virtual void set_path(std::uint32_t /*subflow*/, const Path& /*there*/, const Path& /*back*/) { throw lacks("one path"); }
  // Routing has other tables now, in which these are the subflow's paths.
  virtual void rerouted(std::uint32_t subflow, const Path& there, const Path& back) { set_path(subflow, there, back); }
  // nullptr where no flow is under an agent.
  [[nodiscard]] virtual const Agents* agents() const { return nullptr; }

 private:
  static std::invalid_argument lacks(const char* what) {
    return std::invalid_argument(std::string("flows of this transport do not have ") + what);
  }
};

class TransportState {
 public:
  TransportState() = default;
  TransportState(const TransportState&) = delete;
  TransportState& operator=(const TransportState&) = delete;
  TransportState(TransportState&&) = delete;
  TransportState& operator=(TransportState&&) = delete;
  virtual ~TransportState() = default;

  // Throws std::invalid_argument where flows are under an agent and there is none.
  [[nodiscard]] virtual std::unique_ptr<Transport> of_partition(Stack& stack, std::optional<AgentConfig>&& agent) = 0;

  [[nodiscard]] virtual std::uint32_t flows() const = 0;
  [[nodiscard]] virtual std::uint32_t subflows() const = 0;
  [[nodiscard]] virtual FlowProgress flow(std::uint32_t number) const = 0;
  [[nodiscard]] virtual SubflowReading subflow(std::uint32_t number, Time now) const = 0;
  [[nodiscard]] virtual SubflowRoute route(std::uint32_t subflow) const = 0;
  // The size of the smallest packet that any host sends.
  [[nodiscard]] virtual std::uint32_t fewest_bytes() const = 0;
};

// A record is in the list of all transports from the beginning: defining one in a source file is all that it takes.
struct TransportKind {
  // Throws std::invalid_argument for flows and networks that the transport does not have. The options must outlive it.
  using Make = std::unique_ptr<TransportState> (*)(const TransportOptions& options, Network& network,
                                                   const std::vector<FlowConfig>& flows);

  TransportKind(std::string_view given, std::span<const QueueSetting> declared, Make function, bool can_trim = false,
                bool all_paths = false)
      : name(given), settings(declared), make(function), trims(can_trim), sprays(all_paths),
        next_(std::exchange(last(), this)) {}
  TransportKind(const TransportKind&) = delete;
  TransportKind& operator=(const TransportKind&) = delete;
  TransportKind(TransportKind&&) = delete;
  TransportKind& operator=(TransportKind&&) = delete;
  ~TransportKind() = default;

  // All transports, by name.
  [[nodiscard]] static std::vector<const TransportKind*> all() {
    std::vector<const TransportKind*> out;
    for (const TransportKind* each = last(); each != nullptr; each = each->next_) out.push_back(each);
    std::ranges::sort(out, {}, &TransportKind::name);
    return out;
  }
  // Throws std::invalid_argument for an unknown name.
  [[nodiscard]] static const TransportKind& named(std::string_view name) {
    for (const TransportKind* each : all()) {
      if (each->name == name) return *each;
    }
    throw std::invalid_argument("there is no transport '" + std::string(name) + "'");
  }

  std::string_view name;
  std::span<const QueueSetting> settings;
  Make make;
  bool trims;   // receivers can tell a packet that a switch has trimmed to its header
  bool sprays;  // senders use all paths in turn

 private:
  static const TransportKind*& last() {
    static const TransportKind* defined_last = nullptr;
    return defined_last;
  }

  const TransportKind* next_;
};

}  // namespace fabric
