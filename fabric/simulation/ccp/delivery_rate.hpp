// The delivery rate of a sender as Linux samples it (net/ipv4/tcp_rate.c, draft-cheng-iccrg-delivery-rate-estimation).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace fabric {

struct DeliverySample {
  std::uint32_t pkts = 0;
  Time sending = 0;    // 0: no sample
  Time arriving = 0;
};

class DeliveryRate {
 public:
  // Transmission number `order` leaves; all up to `arrived` are known to have arrived.
  void sent(std::uint32_t order, std::uint32_t arrived, bool idle_before, Time now) {
    if (idle_before) first_sent_ = delivered_at_ = now;
    while (order - arrived >= sent_.size()) grow();
    sent_[order & (sent_.size() - 1)] = {order, delivered_, delivered_at_, first_sent_, now};
  }

  // `fresh` packets have arrived; the latest was transmission number `order`.
  DeliverySample arrived(std::uint32_t order, std::uint32_t fresh, Time now) {
    delivered_ += fresh;
    delivered_at_ = now;
    if (sent_.empty()) return {};
    const Sent& of = sent_[order & (sent_.size() - 1)];
    if (of.order != order || fresh == 0) return {};
    first_sent_ = of.at;
    return {delivered_ - of.delivered, of.at - of.first_sent, now - of.delivered_at};
  }

 private:
  struct Sent {
    std::uint32_t order = 0;
    std::uint32_t delivered = 0;
    Time delivered_at = 0;
    Time first_sent = 0;
    Time at = 0;
  };

  void grow() {
    std::vector<Sent> larger(std::max<std::size_t>(64, sent_.size() * 2));
    for (const Sent& each : sent_) larger[each.order & (larger.size() - 1)] = each;
    sent_.swap(larger);
  }

  std::vector<Sent> sent_;
  std::uint32_t delivered_ = 0;
  Time delivered_at_ = 0;
  Time first_sent_ = 0;
};

}  // namespace fabric
