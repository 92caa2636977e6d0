// The law of CoDel (RFC 8289; Nichols and Jacobson, ACM Queue 2012), of one queue. It drops at the head of a FIFO, at a rate that rises with the
// square root of the number of drops, once packets have waited longer than `target` for a whole `interval`.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

struct CoDelParameters {
  explicit CoDelParameters(const QueueSettings& of)
      : target(of.us("target_us")), interval(of.us("interval_us")), ecn(of.on("ecn")) {}

  Time target;
  Time interval;
  bool ecn;
};

// The state of one queue under CoDel, with the names of RFC 8289, section 5.
class CoDelState {
 public:
  // Removes the packet to send now, and drops or marks before it what the law requires; kNone: the list is empty.
  [[nodiscard]] PacketId next(PacketList& list, PortNow& port, const CoDelParameters& of) {
    PacketId id = list.pop_front(port.pool);
    bool may_drop = stays_above(id, list, port, of);
    if (!dropping_) {
      if (may_drop) id = begin(id, list, port, of);
      return id;
    }
    if (!may_drop) dropping_ = false;
    while (dropping_ && port.now >= drop_next_) {
      ++count_;
      const bool marked = of.ecn && port.mark(id);
      if (!marked) {
        port.drop(id);
        id = list.pop_front(port.pool);
        may_drop = stays_above(id, list, port, of);
      }
      if (may_drop) drop_next_ += step(of);
      else dropping_ = false;
      if (marked) break;
    }
    return id;
  }

 private:
  // Section 5.6: the first drop or mark, at a rate not far below that of the last time if that was a moment ago.
  [[nodiscard]] PacketId begin(PacketId id, PacketList& list, PortNow& port, const CoDelParameters& of) {
    if (!of.ecn || !port.mark(id)) {
      port.drop(id);
      id = list.pop_front(port.pool);
      (void)stays_above(id, list, port, of);
    }
    dropping_ = true;
    const std::uint32_t since = count_ - last_count_;
    count_ = since > 1 && port.now - drop_next_ < 16 * of.interval ? since : 1;
    last_count_ = count_;
    drop_next_ = port.now + step(of);
    return id;
  }

  // Section 5.5: whether packets have waited longer than the target for an interval, and more than one still waits.
  [[nodiscard]] bool stays_above(PacketId id, const PacketList& list, const PortNow& port, const CoDelParameters& of) {
    if (id != kNone) largest_ = std::max(largest_, port.pool[id].size_bytes);
    if (id == kNone || port.waited(id) < of.target || list.bytes() <= largest_) {
      first_above_ = kNever;
      return false;
    }
    if (first_above_ == kNever) first_above_ = port.now + of.interval;
    return port.now >= first_above_;
  }

  // Section 3.3, the control law.
  [[nodiscard]] Time step(const CoDelParameters& of) const {
    return static_cast<Time>(static_cast<double>(of.interval) / std::sqrt(static_cast<double>(count_)));
  }

  Time first_above_ = kNever;
  Time drop_next_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t last_count_ = 0;
  std::uint16_t largest_ = 0;  // packet so far, which stands for the MTU
  bool dropping_ = false;
};

// Linux's defaults (include/net/codel_impl.h), which RFC 8289, section 4.4, recommends.
inline constexpr QueueSetting kCoDelTarget{"target_us", "us", 1, 1e9, 5'000, false, "acceptable time in the queue"};
inline constexpr QueueSetting kCoDelInterval{"interval_us", "us", 1, 1e9, 100'000, false,
                                             "time above the target until the first drop: a long round trip"};
inline constexpr QueueSetting kMarkInstead{"ecn", "", 0, 1, 0, true, "1: mark ECN-capable packets instead"};

}  // namespace fabric
