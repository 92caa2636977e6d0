#include "simulation/partition.hpp"

#include <algorithm>
#include <utility>

namespace fabric {

Partition::Partition(Tables& tables, Network part, const std::vector<FlowConfig>& flows, std::size_t number,
                     const std::optional<NoiseConfig>& noise, std::optional<AgentConfig> agent)
    : stack_(tables.options, tables.contents, std::move(part), number, noise, tables.datagrams.size(), tables.order),
      datagrams_(stack_, tables.datagrams, number),
      transport_(tables.transport->of_partition(stack_, std::move(agent))), order_(tables.order),
      by_start_(by_start(flows, stack_.network.partitions(), number)) {
  if (!by_start_.empty()) stack_.timers.schedule(Alarm::start, kNone, order_[by_start_.front()].start);
}

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
      return start_due(due);
    case Alarm::follow:
      return transport_->start(owner, due);
    case Alarm::nic:
      return transport_->may_send(owner, due);
    case Alarm::datagram:
      return datagrams_.send(owner, due);
    default:
      return transport_->expired(what, owner, id, due);
  }
}

void Partition::start_due(Time now) {
  for (; started_ != by_start_.size(); ++started_) {
    const std::uint32_t number = by_start_[started_];
    const Time start_at = order_[number].start;
    if (start_at > now) {
      stack_.timers.schedule(Alarm::start, kNone, start_at);
      return;
    }
    transport_->start(number, now);
  }
}

void Partition::deliver(PacketId id, Time due) {
  if (stack_.segments[id].carries == Carries::datagram) return datagrams_.received(id);
  transport_->received(id, due);
}

// ---- On a machine that stalls. Between stalls a simulation runs as usual, so a machine that never stalls costs nothing.

// Network's Hosts during a stall: hosts notice nothing until it ends, and do nothing where their own CPUs stall.
struct Partition::Asleep {
  Partition& partition;

  void deliver(PacketId id, Time /*due*/) { partition.stack_.clock.noise()->keep_back(id); }
  void dropped(PacketId id, PortId port, Time when) { partition.dropped(id, port, when); }
  void left(PortId port, Time when) { partition.left(port, when); }
  void alarm(PacketId id, Time due) {
    MachineNoise& noise = *partition.stack_.clock.noise();
    if (!noise.stalls_timers()) return partition.alarm(id, due);
    noise.keep_back(id);
  }
};

void Partition::run_with_stalls(Time limit) {
  MachineNoise& noise = *stack_.clock.noise();
  Asleep asleep{*this};
  for (Time done = std::exchange(slept_until_, limit);;) {
    const Stall stall = noise.stall();
    const Time begin = noise.elastic() ? stall.begin : stall.begin - 1;
    if (done < begin) stack_.network.run_until(std::min(limit, begin), *this);
    if (limit <= begin) return;
    if (noise.elastic()) {
      stack_.clock.jump(stall.length());
    } else {
      stack_.network.run_until(std::min(limit, stall.end - 1), asleep);
      if (limit < stall.end) return;
      wake_up(stall.end);
    }
    noise.end_stall();
    done = begin;
  }
}

// Carries out all that came due during the stall, in order.
void Partition::wake_up(Time now) {
  MachineNoise& noise = *stack_.clock.noise();
  for (const PacketId id : noise.kept()) {
    const Packet& packet = stack_.network.pool()[id];
    if (packet.kind == Kind::alarm) {
      alarm(id, now);
      continue;
    }
    noise.record(now - packet.due);
    deliver(id, now);
  }
  noise.kept().clear();
}

}  // namespace fabric
