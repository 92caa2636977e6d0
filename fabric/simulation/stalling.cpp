// A simulation on a machine that stalls. What happens between stalls is the simulation as usual, so that a machine that
// never stalls costs nothing.
#include <algorithm>

#include "simulation/simulation.hpp"

namespace fabric {

// Network's Hosts during a stall: they hear of nothing until it ends, and do nothing where their own CPUs stall.
struct Simulation::Asleep {
  Simulation& simulation;

  void deliver(PacketId id, Time /*due*/) { simulation.noise_->keep_back(id); }
  void dropped(PacketId id, PortId port, Time when) { simulation.dropped(id, port, when); }
  void alarm(PacketId id, Time due) {
    if (!simulation.noise_->stalls_timers()) return simulation.alarm(id, due);
    simulation.noise_->keep_back(id);
  }
};

void Simulation::run_with_stalls(Time limit) {
  Asleep asleep{*this};
  for (Time done = now_;;) {
    const Stall stall = noise_->stall();
    const Time begin = noise_->elastic() ? stall.begin : stall.begin - 1;
    if (done < begin) network_.run_until(std::min(limit, begin), *this);
    if (limit <= begin) return;
    if (noise_->elastic()) {
      ahead_ += stall.length();
    } else {
      network_.run_until(std::min(limit, stall.end - 1), asleep);
      if (limit < stall.end) return;
      wake_up(stall.end);
    }
    noise_->end_stall();
    done = begin;
  }
}

// All that was due meanwhile, in order.
void Simulation::wake_up(Time now) {
  for (const PacketId id : noise_->kept()) {
    const Packet& packet = network_.pool()[id];
    if (packet.kind == Kind::alarm) {
      alarm(id, now);
      continue;
    }
    noise_->record(now - packet.due);
    deliver(id, now);
  }
  noise_->kept().clear();
}

// When a host's clock shows so much more than now.
Time Simulation::after(Time now, Time wait) {
  if (!noise_ || !noise_->elastic()) [[likely]] return now + wait;
  return noise_->instant(now, wait);
}

}  // namespace fabric
