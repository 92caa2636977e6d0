// DRILL(d, m) (Ghorbani et al., SIGCOMM 2017, section 3): for every packet a switch compares the queues of d next
// hops at random with those of the m that were the shortest before, sends the packet to the shortest, and keeps the
// m shortest of them. The paper's groups of symmetric paths are not here: in an unequal network it
// sees the queues of its own ports only.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/balancing/balancer.hpp"
#include "core/balancing/flowlets.hpp"
#include "core/port.hpp"
#include "core/random.hpp"

namespace fabric {

class Drill : public Balancer {
 public:
  static constexpr std::string_view kName = "drill";

  Drill(std::size_t samples, std::size_t memory, std::span<Port> ports, Random random)
      : samples_(samples), memory_(memory), ports_(ports), random_(random) {}

  [[nodiscard]] PortId choose(const Packet& /*packet*/, Steering& /*steering*/, std::span<const GroupMember> hops,
                              Time now) override {
    if (hops.size() == 1) return hops.front().port;
    std::vector<PortId>& shortest = shortest_[hops.front().port];
    seen_.clear();
    sample(hops, now);
    for (const PortId port : shortest) {
      if (FlowletTable::is_hop(port, hops)) see(port, now);
    }
    std::ranges::sort(seen_);
    shortest.clear();
    for (const Queue& queue : seen_) {
      if (shortest.size() == memory_) break;
      shortest.push_back(queue.port);
    }
    return seen_.front().port;
  }

 private:
  // Of equal queues the one seen first comes first, a random sample, so that an idle switch spreads its packets.
  struct Queue {
    std::uint64_t bytes;
    std::size_t place;
    PortId port;

    friend auto operator<=>(const Queue&, const Queue&) = default;
  };

  // Sees `samples_` different hops.
  void sample(std::span<const GroupMember> hops, Time now) {
    order_.resize(hops.size());
    for (std::size_t i = 0; i < hops.size(); ++i) order_[i] = hops[i].port;
    for (std::size_t i = 0; i < std::min(samples_, hops.size()); ++i) {
      const auto left = static_cast<std::uint32_t>(hops.size() - i);
      std::swap(order_[i], order_[i + random_.below(left)]);
      see(order_[i], now);
    }
  }
  void see(PortId port, Time now) {
    const auto known = [port](const Queue& queue) { return queue.port == port; };
    if (std::ranges::none_of(seen_, known)) seen_.push_back({ports_[port].queued_bytes(now), seen_.size(), port});
  }

  std::size_t samples_;
  std::size_t memory_;
  std::span<Port> ports_;
  Random random_;
  std::unordered_map<PortId, std::vector<PortId>> shortest_;  // of the next hops whose first is the key
  std::vector<PortId> order_;
  std::vector<Queue> seen_;
};

}  // namespace fabric
