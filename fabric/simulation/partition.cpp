#include "simulation/partition.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/prefetch.hpp"
#include "simulation/ccp/datapath.hpp"
#include "simulation/transport/handshake.hpp"
#include "simulation/transport/lifecycle.hpp"
#include "simulation/transport/loss_recovery.hpp"
#include "simulation/transport/receiver.hpp"
#include "simulation/transport/sender.hpp"

namespace fabric {

namespace {

// Adds the datapaths of subflows under an agent.
void add_agents(Stack& stack, std::optional<AgentConfig>&& agent) {
  if (agent) stack.agents = std::make_unique<Agents>(std::move(*agent), stack.subflows.size());
  const bool needed = std::ranges::any_of(stack.connections, [](const Connection& each) { return each.control->by_agent; });
  if (needed && !stack.agents) throw std::invalid_argument("flows are under an agent, but there is none");
}

// Adds all that starts by itself. Alarms due at the same time ring in the order in which they are scheduled.
FlowStarts populate(Stack& stack, const std::vector<FlowConfig>& flows, std::size_t number,
                    std::optional<AgentConfig>&& agent) {
  add_agents(stack, std::move(agent));
  for (std::uint32_t i = 0; i < stack.datagrams.size(); ++i) {
    const DatagramSource& source = stack.datagrams[i];
    if (stack.network.partitions().of_nic(source.source) == number) stack.timers.schedule(Alarm::datagram, i, source.start);
  }
  return {stack, flows, number};
}

}  // namespace

Partition::Partition(Tables& tables, Network part, const std::vector<FlowConfig>& flows, std::size_t number,
                     const std::optional<NoiseConfig>& noise, std::optional<AgentConfig> agent)
    : stack_(tables, std::move(part), number, noise), starts_(populate(stack_, flows, number, std::move(agent))) {}

void Partition::run_until(Time limit) {
  if (stack_.clock.noise()) {
    run_with_stalls(limit);
  } else {
    stack_.network.run_until(limit, *this);
  }
}

void Partition::alarm(PacketId id, Time due) {
  const std::uint32_t owner = stack_.network.pool()[id].owner;
  const Alarm what = Timers::alarm_of(stack_.network.pool()[id]);
  stack_.network.pool().release(id);
  switch (what) {
    case Alarm::start:
      return starts_.start_due(due);
    case Alarm::follow:
      return Lifecycle(stack_, owner).start(due);
    case Alarm::join:
      return Lifecycle(stack_, owner).join(due);
    case Alarm::datagram:
      return send_datagram(stack_, owner, due);
    case Alarm::agent:
      return serve_agent(stack_, due);
    case Alarm::pacing:
      if (!stack_.timers.expires(stack_.agents->rest[owner].pacing, what, id, owner, due)) return;
      return Sender(stack_, owner).send_all(due);
    case Alarm::nic:
      return HostQueue(stack_, owner).serve(due);
    case Alarm::retransmission:
      if (!stack_.timers.expires(stack_.subflows[owner].sender.retransmission, what, id, owner, due)) return;
      return LossRecovery(stack_, owner).timed_out(due);
    case Alarm::delayed_ack:
      if (!stack_.timers.expires(stack_.subflows[owner].receiver.delayed, what, id, owner, due)) return;
      return Receiver(stack_, owner).delayed_ack_expired(due);
  }
}

void Partition::deliver(PacketId id, Time due) {
  const std::uint32_t owner = stack_.network.pool()[id].owner;
  const Segment& arrived = stack_.segments[id];
  if (arrived.carries == Carries::data) return Receiver(stack_, owner).arrived(id, due);
  if (arrived.carries == Carries::probe) return Receiver(stack_, owner).probed(id, due);
  if (arrived.carries == Carries::syn) return Handshake(stack_, owner).answer(id, due);
  const Acknowledgement segment = stack_.acknowledgement(id);
  stack_.network.pool().release(id);
  switch (segment.carries) {
    case Carries::syn_acknowledgement:
      return Handshake(stack_, owner).established(segment.sent, due);
    case Carries::datagram:
      ++stack_.datagrams[owner].received;
      return;
    default:
      return Sender(stack_, owner).acknowledged(segment, due);
  }
}

void Partition::expect(PacketId id) const {
  const Packet& packet = stack_.network.pool()[id];
  if (packet.kind == Kind::alarm) {
    if (Timers::alarm_of(packet) == Alarm::nic) expect_room(packet.owner);
    return;
  }
  prefetch_to_write(&stack_.segments[id]);
  if (packet.owner >= stack_.subflows.size()) return;  // a source of datagrams
  if (packet.size_bytes <= stack_.options.ack_bytes + stack_.options.mptcp_ack_bytes) {
    stack_.subflows[packet.owner].prefetch_sender();
  } else {
    stack_.subflows[packet.owner].prefetch_receiver();
  }
}

void Partition::expect_room(PortId port) const {
  stack_.network.ports()[port].prefetch();
  prefetch_to_write(&stack_.waiting[port]);
}

// What `expect` has fetched is in the cache by now: fetches what it points to.
void Partition::expect_soon(PacketId id) const {
  const Packet& packet = stack_.network.pool()[id];
  if (packet.kind == Kind::alarm) {
    if (Timers::alarm_of(packet) != Alarm::nic) return;
    const std::uint32_t first = stack_.waiting[packet.owner].first;
    if (first != kNone) stack_.subflows[first].prefetch_sender();
    return;
  }
  const Segment& segment = stack_.segments[id];
  const bool of_receiver = segment.carries == Carries::data;
  if (!of_receiver && segment.carries != Carries::acknowledgement) return;
  const Subflow& subflow = stack_.subflows[packet.owner];
  const Connection& connection = stack_.connections[subflow.connection];
  if (of_receiver) {
    prefetch(&connection);
    prefetch_to_write(&connection.arrivals);
    stack_.network.ports()[subflow.back.ports[0]].prefetch();
    subflow.receiver.arrivals.prefetch(segment.seq);
    connection.arrivals.prefetch(segment.dsn);
    return;
  }
  prefetch(&connection);
  prefetch_to_write(&connection.next);
  if (segment.block_count != 0) prefetch(&stack_.blocks[id]);
  stack_.network.ports()[subflow.forward.ports[0]].prefetch();
  subflow.sender.board.prefetch();
  if (connection.control->by_agent) stack_.agents->prefetch(packet.owner);
  const PathState* first = &stack_.paths[packet.owner - subflow.number];
  prefetch_lines(first, first + std::min(connection.count, 8U) - 1);
}

}  // namespace fabric
