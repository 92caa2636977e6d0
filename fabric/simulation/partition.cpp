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
    transport_->run(*this, limit);
  }
}

void Transport::run(Partition& partition, Time limit) {
  Awake<Transport> hosts{partition, *this};
  partition.network().run_until(limit, hosts);
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

// ---- On a machine that stalls. Between stalls a simulation runs as usual, so a machine that never stalls costs nothing.

// Network's Hosts during a stall: hosts notice nothing until it ends, and do nothing where their own CPUs stall.
struct Partition::Asleep {
  Partition& partition;
  Awake<Transport> awake;

  void deliver(PacketId id, Time /*due*/) { partition.stack_.clock.noise()->keep_back(id); }
  void dropped(PacketId id, PortId port, Time when) { awake.dropped(id, port, when); }
  void left(PortId port, Time when) { awake.left(port, when); }
  void alarm(PacketId id, Time due) {
    MachineNoise& noise = *partition.stack_.clock.noise();
    if (!noise.stalls_timers()) return awake.alarm(id, due);
    noise.keep_back(id);
  }
};

void Partition::run_with_stalls(Time limit) {
  MachineNoise& noise = *stack_.clock.noise();
  Asleep asleep{*this, {*this, *transport_}};
  for (Time done = std::exchange(slept_until_, limit);;) {
    const Stall stall = noise.stall();
    const Time begin = noise.elastic() ? stall.begin : stall.begin - 1;
    if (done < begin) transport_->run(*this, std::min(limit, begin));
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
  Awake<Transport> awake{*this, *transport_};
  for (const PacketId id : noise.kept()) {
    const Packet& packet = stack_.network.pool()[id];
    if (packet.kind == Kind::alarm) {
      awake.alarm(id, now);
      continue;
    }
    noise.record(now - packet.due);
    awake.deliver(id, now);
  }
  noise.kept().clear();
}

}  // namespace fabric
