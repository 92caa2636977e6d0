// A machine that stalls, in virtual time: how an emulation on such a machine affects its hosts.
//
// Strict clock: the network's time is real time. While the fabric's CPU stalls, packets due at hosts are held back and
// delivered when the stall ends. While the hosts' CPUs stall, their timers are held back too. Elastic clock, where all
// CPUs stall: the network stands still with the machine, so a stall is an instant of its time at which the hosts' clocks
// jump ahead. All times are the network's, except those that hosts measure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/histogram.hpp"
#include "core/packet.hpp"
#include "core/stalls.hpp"
#include "core/units.hpp"

namespace fabric {

struct NoiseConfig {
  StallLaw law;
  std::uint32_t seed = 0;
  bool stalls_timers = false;  // the hosts' CPUs stall too
  bool elastic = false;        // the network stands still meanwhile
};

class MachineNoise {
 public:
  explicit MachineNoise(const NoiseConfig& config)
      : config_(config), stalls_(config.law, config.seed, 0), upcoming_{draw()} {}

  [[nodiscard]] bool elastic() const { return config_.elastic; }
  [[nodiscard]] bool stalls_timers() const { return config_.stalls_timers; }

  // The current or next stall, in the network's time. With an elastic clock it takes no time there.
  [[nodiscard]] const Stall& stall() const { return upcoming_.front(); }
  void end_stall() {
    stalled_ += stall().length();
    upcoming_.pop_front();
    if (upcoming_.empty()) upcoming_.push_back(draw());
  }

  // The network's time at which the hosts' clocks, which jump ahead in stalls, have advanced by `wait`.
  [[nodiscard]] Time instant(Time now, Time wait) {
    Time jumps = 0;
    for (std::size_t i = 0;; ++i) {
      if (i == upcoming_.size()) upcoming_.push_back(draw());
      const Stall& next = upcoming_[i];
      if (next.begin > now + wait - jumps) return now + wait - jumps;
      jumps += next.length();
      if (now + wait - jumps <= next.begin) return next.begin + 1;
    }
  }

  void keep_back(PacketId id) { kept_.push_back(id); }
  [[nodiscard]] std::vector<PacketId>& kept() { return kept_; }
  void record(Time late) { lateness_.record(late / kNanosecond); }

  // Lateness of the deliveries that were late, in ns.
  [[nodiscard]] const Histogram& lateness() const { return lateness_; }
  // Real time stalled so far, up to this instant of the network's time.
  [[nodiscard]] Time stalled(Time now) const {
    return stalled_ + (config_.elastic || now < stall().begin ? 0 : now - stall().begin);
  }

 private:
  // An elastic clock leaves the stalls out: the times between them join without a gap.
  Stall draw() {
    const Stall real = stalls_.next();
    if (!config_.elastic) return real;
    const Stall seen{real.begin - left_out_, real.end - left_out_};
    left_out_ += real.length();
    return seen;
  }

  NoiseConfig config_;
  Stalls stalls_;
  Time left_out_ = 0;
  std::deque<Stall> upcoming_;
  std::vector<PacketId> kept_;  // in the order in which they were due
  Histogram lateness_;
  Time stalled_ = 0;
};

// The clock that simulated hosts read. It is the network's time, plus the stalls that an elastic clock leaves out.
class HostClock {
 public:
  explicit HostClock(const std::optional<NoiseConfig>& noise) {
    if (noise) noise_.emplace(*noise);
  }

  // What hosts read at this instant of the network's time.
  [[nodiscard]] Time reading(Time now) const { return now + ahead_; }

  // The network's time at which hosts have seen this long pass.
  [[nodiscard]] Time after(Time now, Time wait) {
    if (!noise_ || !noise_->elastic()) [[likely]] return now + wait;
    return noise_->instant(now, wait);
  }

  void jump(Time by) { ahead_ += by; }

  // Empty where the machine never stalls.
  [[nodiscard]] const std::optional<MachineNoise>& noise() const { return noise_; }
  [[nodiscard]] std::optional<MachineNoise>& noise() { return noise_; }

 private:
  std::optional<MachineNoise> noise_;
  Time ahead_ = 0;
};

}  // namespace fabric
