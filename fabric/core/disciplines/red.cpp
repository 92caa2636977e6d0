// RED (Floyd and Jacobson, ToN 1993): packets are dropped on arrival, or marked, with a probability that rises with the
// average length of the queue. `gentle` lets it rise to 1 at twice `max_pkts` instead of a step (Floyd, 2000).
// `adaptive` steers `max_p` so that the average stays half-way between the thresholds (Floyd, Gummadi and Shenker, 2001).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "core/disciplines/codel.hpp"
#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class Red {
 public:
  static constexpr std::string_view kName = "red";
  static constexpr std::array kSettings{
      QueueSetting{"min_pkts", "packets", 0, 1e6, 5, false, "average length where drops begin"},
      QueueSetting{"max_pkts", "packets", 0.001, 1e6, 15, false, "average length where the probability is max_p"},
      QueueSetting{"max_p", "", 1e-6, 1, 0.1, false, "probability of a drop at max_pkts"},
      QueueSetting{"weight", "", 1e-9, 1, 0.002, false, "of a packet in the average length"},
      QueueSetting{"gentle", "", 0, 1, 1, true, "1: up to twice max_pkts not every packet is dropped"},
      QueueSetting{"adaptive", "", 0, 1, 0, true, "1: max_p adapts to the traffic"},
      kMarkInstead};

  explicit Red(const QueueSettings& settings)
      : min_(settings["min_pkts"]), max_(settings["max_pkts"]), max_p_(settings["max_p"]), weight_(settings["weight"]),
        gentle_(settings.on("gentle")), adaptive_(settings.on("adaptive")), ecn_(settings.on("ecn")) {
    if (!(max_ > min_)) throw std::invalid_argument("the queue red needs a max_pkts above its min_pkts");
  }

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    average(port);
    if (adaptive_) adapt(port.now);
    if (!chosen(port) || (average_ < certain() && ecn_ && port.mark(id))) {
      idle_since_ = kNever;
      packets_.push_back(port.pool, id);
      return true;
    }
    return false;
  }

  [[nodiscard]] PacketId next(PortNow& port) {
    if (packets_.empty() && idle_since_ == kNever) idle_since_ = port.now;
    return packets_.pop_front(port.pool);
  }

 private:
  static constexpr std::int64_t kIdleBits = 8 * 1000;  // of a packet that could have left while the port was idle
  static constexpr Time kAdaptEvery = kSecond / 2;

  // Section 4 of 1993: over an idle time the average falls as if packets had found an empty queue. The port stays idle
  // until a packet is kept. A frame of a real host may be older than the beginning of the idle time.
  void average(const PortNow& port) {
    if (idle_since_ != kNever) {
      const Time each = kIdleBits * kSecond / port.rate_bps;
      const Time packets = std::max<Time>(0, port.now - idle_since_) / each;
      average_ *= power(1 - weight_, static_cast<std::uint64_t>(packets));
      idle_since_ += packets * each;
    }
    average_ += weight_ * (packets_.pkts() - average_);
  }

  // Whether the packet is dropped or marked. Then gaps between such packets are uniform in 1 .. 1 / probability (1993,
  // section 7, method 2).
  [[nodiscard]] bool chosen(PortNow& port) {
    const double probability = probability_now();
    if (probability <= 0) {
      spared_ = 0;
      return false;
    }
    const double left = 1 - static_cast<double>(spared_) * probability;
    ++spared_;
    if (left > probability && port.random.uniform() >= probability / left) return false;
    spared_ = 0;
    return true;
  }

  [[nodiscard]] double certain() const { return gentle_ ? 2 * max_ : max_; }
  [[nodiscard]] double probability_now() const {
    if (average_ < min_) return 0;
    if (average_ < max_) return max_p_ * (average_ - min_) / (max_ - min_);
    return average_ < certain() ? max_p_ + (1 - max_p_) * (average_ - max_) / max_ : 1;
  }

  // 2001, section 3: additive increase and multiplicative decrease, at intervals of 0.5 s.
  void adapt(Time now) {
    const double width = max_ - min_;
    for (; adapted_ + kAdaptEvery <= now; adapted_ += kAdaptEvery) {
      if (average_ > min_ + 0.6 * width && max_p_ <= 0.5) max_p_ += std::min(0.01, max_p_ / 4);
      if (average_ < min_ + 0.4 * width && max_p_ >= 0.01) max_p_ *= 0.9;
    }
  }

  // By multiplication alone: std::pow may differ from one C library to another.
  static double power(double base, std::uint64_t exponent) {
    double result = 1;
    for (; exponent != 0; exponent >>= 1, base *= base) {
      if ((exponent & 1) != 0) result *= base;
    }
    return result;
  }

  double min_;
  double max_;
  double max_p_;
  double weight_;
  bool gentle_;
  bool adaptive_;
  bool ecn_;
  double average_ = 0;
  std::uint64_t spared_ = 0;  // packets since the last one that was chosen
  Time idle_since_ = 0;       // kNever: it is not
  Time adapted_ = 0;
  PacketList packets_;
};

template QueueKind kind_of<Red>();

}  // namespace fabric
