// HULL's phantom queue (Alizadeh et al., NSDI 2012, section 3.1): a counter of bytes that drains at a part of the link's
// rate marks packets before any wait. The real queue is a FIFO.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class Phantom {
 public:
  static constexpr std::string_view kName = "phantom";
  static constexpr bool kMarks = true;
  static constexpr std::array kSettings{
      QueueSetting{"drain_pct", "%", 1, 100, 95, false, "rate of the phantom queue, in percent of the link's"},
      QueueSetting{"mark_bytes", "bytes", 0, 1e9, 1'000, true, "length from which it marks"}};

  explicit Phantom(const QueueSettings& settings)
      : drain_(settings["drain_pct"] / 100), mark_bytes_(settings["mark_bytes"]) {}

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    packets_.push_back(port.pool, id);
    return true;
  }
  // A packet counts when it leaves, so that a burst that the link spreads out does not fill the phantom queue at once.
  [[nodiscard]] PacketId next(PortNow& port) {
    const PacketId id = packets_.pop_front(port.pool);
    if (id == kNone) return kNone;
    const double rate = drain_ * static_cast<double>(port.rate_bps) / 8 / static_cast<double>(kSecond);
    bytes_ = std::max(0.0, bytes_ - rate * static_cast<double>(port.now - counted_));
    counted_ = port.now;
    if (bytes_ > mark_bytes_) (void)port.mark(id);
    bytes_ += port.pool[id].size_bytes;
    return id;
  }

 private:
  double drain_;
  double mark_bytes_;
  double bytes_ = 0;
  Time counted_ = 0;
  PacketList packets_;
};

template QueueKind kind_of<Phantom>();

}  // namespace fabric
