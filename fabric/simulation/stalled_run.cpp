// A simulation on a machine that stalls. Between stalls it runs as usual, so a machine that never stalls costs nothing.
#include <algorithm>

#include "simulation/simulation.hpp"

namespace fabric {

// Network's Hosts during a stall: hosts notice nothing until it ends, and do nothing where their own CPUs stall.
struct Simulation::Asleep {
  Simulation& simulation;

  void deliver(PacketId id, Time /*due*/) { simulation.stack_.clock.noise()->keep_back(id); }
  void dropped(PacketId id, PortId port, Time when) { simulation.dropped(id, port, when); }
  void alarm(PacketId id, Time due) {
    MachineNoise& noise = *simulation.stack_.clock.noise();
    if (!noise.stalls_timers()) return simulation.alarm(id, due);
    noise.keep_back(id);
  }
};

void Simulation::run_with_stalls(Time limit) {
  MachineNoise& noise = *stack_.clock.noise();
  Asleep asleep{*this};
  for (Time done = now_;;) {
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
void Simulation::wake_up(Time now) {
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
