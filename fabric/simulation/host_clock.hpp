// The clock that simulated hosts read. It is the network's time, plus the stalls that an elastic clock leaves out.
#pragma once

#include <optional>

#include "core/units.hpp"
#include "simulation/machine_noise.hpp"

namespace fabric {

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
