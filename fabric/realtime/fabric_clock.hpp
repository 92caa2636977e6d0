// The fabric's clock: real time less the pauses in which the machine stood still.
//
// Real hosts on a machine that stands still send and receive nothing. If the fabric's time went on, queues would drain
// meanwhile, links would idle, and a burst of late frames would follow. So the fabric's time pauses with the machine.
// The hosts' kernels do not notice: to them a round trip takes longer by the pause.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/units.hpp"

namespace fabric {

class FabricClock {
 public:
  struct Pauses {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;
    std::int64_t longest_ns = 0;  // since `restart_longest`
  };

  void start(std::int64_t real_ns) { epoch_ns_ = last_ns_ = real_ns; }

  // Fabric time at `real_ns`, not before the last pause ended.
  [[nodiscard]] Time at(std::int64_t real_ns) const { return (real_ns - epoch_ns_ - pauses_.total_ns) * kNanosecond; }

  // The real instant at which it will be `when`, if nothing pauses it.
  [[nodiscard]] std::int64_t real_ns(Time when) const { return epoch_ns_ + pauses_.total_ns + when / kNanosecond; }

  // Time stood still from `from_ns` to `to_ns`. Time up to the last call of `lived` stays as it is.
  void pause(std::int64_t from_ns, std::int64_t to_ns) {
    from_ns = std::max(from_ns, last_ns_);
    if (to_ns <= from_ns) return;
    Pause* latest = &recent_[(added_ + kRemembered - 1) % kRemembered];
    if (added_ != 0 && latest->to_ns == from_ns) {
      latest->to_ns = to_ns;  // it goes on
    } else {
      latest = &recent_[added_++ % kRemembered];
      *latest = {from_ns, to_ns, pauses_.total_ns};
      ++pauses_.count;
    }
    pauses_.total_ns += to_ns - from_ns;
    pauses_.longest_ns = std::max(pauses_.longest_ns, latest->to_ns - latest->from_ns);
    last_ns_ = to_ns;
  }

  // The owner has processed everything up to this instant.
  void lived(std::int64_t real_ns) { last_ns_ = std::max(last_ns_, real_ns); }

  // Fabric time at an instant of the recent past; within a pause it is when that began.
  [[nodiscard]] Time of_past(std::int64_t real_ns) const {
    const std::size_t known = std::min(added_, kRemembered);
    std::int64_t before_ns = pauses_.total_ns;
    for (std::size_t back = 1; back <= known; ++back) {
      const Pause& pause = recent_[(added_ - back) % kRemembered];
      if (real_ns >= pause.to_ns) break;
      before_ns = pause.before_ns;
      if (real_ns > pause.from_ns) {
        real_ns = pause.from_ns;
        break;
      }
    }
    return (real_ns - epoch_ns_ - before_ns) * kNanosecond;
  }

  [[nodiscard]] std::int64_t epoch_ns() const { return epoch_ns_; }
  [[nodiscard]] std::int64_t lived_ns() const { return last_ns_; }
  [[nodiscard]] const Pauses& pauses() const { return pauses_; }
  void restart_longest() { pauses_.longest_ns = 0; }

 private:
  static constexpr std::size_t kRemembered = 64;
  struct Pause {
    std::int64_t from_ns = 0;
    std::int64_t to_ns = 0;
    std::int64_t before_ns = 0;  // all pauses before it, together
  };

  std::int64_t epoch_ns_ = 0;  // CLOCK_MONOTONIC when fabric time was 0
  std::int64_t last_ns_ = 0;
  Pauses pauses_;
  std::array<Pause, kRemembered> recent_{};
  std::size_t added_ = 0;
};

}  // namespace fabric
