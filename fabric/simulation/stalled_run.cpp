// A simulation on a machine that stalls. Between stalls it runs as usual, so a machine that never stalls costs nothing.
#include <algorithm>
#include <utility>

#include "simulation/partition.hpp"

namespace fabric {

// Network's Hosts during a stall: hosts notice nothing until it ends, and do nothing where their own CPUs stall.
struct Partition::Asleep {
  Partition& partition;

  void deliver(PacketId id, Time /*due*/) { partition.stack_.clock.noise()->keep_back(id); }
  void dropped(PacketId id, PortId port, Time when) { partition.dropped(id, port, when); }
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
