// PIE (RFC 8033): packets are dropped on arrival, or marked, with a probability that a controller updates every 15 ms
// from the time that packets wait and from its trend.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/disciplines/codel.hpp"
#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class Pie {
 public:
  static constexpr std::string_view kName = "pie";
  static constexpr std::array kSettings{
      QueueSetting{"target_us", "us", 1, 1e9, 15'000, false, "time in the queue to keep to"},
      QueueSetting{"update_us", "us", 1, 1e9, 15'000, false, "time between updates of the probability"},
      QueueSetting{"burst_us", "us", 0, 1e9, 150'000, false, "time for which a queue that was short may be long"},
      kMarkInstead};

  explicit Pie(const QueueSettings& settings)
      : target_(settings.us("target_us")), update_(settings.us("update_us")), burst_(settings.us("burst_us")),
        ecn_(settings.on("ecn")), allowance_(burst_) {}

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    update(port.now);
    // Section 5.1: beyond 10 % packets are dropped that could be marked.
    if (chosen(port) && !(ecn_ && probability_ <= 0.1 && port.mark(id))) return false;
    packets_.push_back(port.pool, id);
    return true;
  }

  // The time in the queue is that of the packet that left last (section 5.2), and 0 when none waits.
  [[nodiscard]] PacketId next(PortNow& port) {
    update(port.now);
    const PacketId id = packets_.pop_front(port.pool);
    waited_ = id == kNone ? 0 : port.waited(id);
    return id;
  }

 private:
  static constexpr std::uint64_t kTwoPackets = 2 * 1514;

  // Section 4.1, with the gaps of section 5.4: no drops in quick succession, and none much too late.
  [[nodiscard]] bool chosen(PortNow& port) {
    const bool safe = earlier_ < target_ / 2 && probability_ < 0.2;
    if (allowance_ > 0 || safe || packets_.bytes() <= kTwoPackets) return false;
    accumulated_ = probability_ == 0 ? 0 : accumulated_ + probability_;
    if (accumulated_ < 0.85) return false;
    if (accumulated_ < 8.5 && port.random.uniform() >= probability_) return false;
    accumulated_ = 0;
    return true;
  }

  // Sections 4.2 to 4.4, for each update that was due by now.
  void update(Time now) {
    if (next_update_ == 0) next_update_ = now + update_;
    while (next_update_ <= now) {
      const bool at_rest = probability_ == 0 && waited_ == 0 && earlier_ == 0 && allowance_ == burst_;
      if (at_rest) next_update_ = now + update_ - (now - next_update_) % update_;
      else once();
    }
  }

  void once() {
    next_update_ += update_;
    const double delay = seconds(waited_);
    double change = kAlpha * (delay - seconds(target_)) + kBeta * (delay - seconds(earlier_));
    for (const auto& [below, divisor] : kScales) {
      if (probability_ < below) {
        change /= divisor;
        break;
      }
    }
    if (probability_ >= 0.1) change = std::min(change, 0.02);  // section 5.5
    probability_ += change;
    if (waited_ == 0 && earlier_ == 0) probability_ *= 0.98;
    probability_ = std::clamp(probability_, 0.0, 1.0);
    const bool is_short = waited_ < target_ / 2 && earlier_ < target_ / 2;
    earlier_ = waited_;
    allowance_ = std::max<Time>(0, allowance_ - update_);
    if (probability_ == 0 && is_short) allowance_ = burst_;
  }

  static double seconds(Time time) { return static_cast<double>(time) / static_cast<double>(kSecond); }

  struct Scale {
    double below;
    double divisor;
  };
  static constexpr double kAlpha = 0.125;  // per second, as kBeta
  static constexpr double kBeta = 1.25;
  static constexpr std::array kScales{Scale{1e-6, 2048}, Scale{1e-5, 512}, Scale{1e-4, 128},
                                      Scale{1e-3, 32},   Scale{1e-2, 8},   Scale{1e-1, 2}};

  Time target_;
  Time update_;
  Time burst_;
  bool ecn_;
  Time allowance_;
  double probability_ = 0;
  double accumulated_ = 0;
  Time waited_ = 0;
  Time earlier_ = 0;  // `waited_` at the last update
  Time next_update_ = 0;
  PacketList packets_;
};

template QueueKind kind_of<Pie>();

}  // namespace fabric
