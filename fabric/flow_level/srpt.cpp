#include "flow_level/srpt.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

namespace fabric {

namespace {

struct Active {
  Time left = 0;
  std::uint32_t flow = 0;
  bool sends = false;
};

class Schedule {
 public:
  Schedule(std::span<const FluidFlow> flows, std::uint32_t hosts)
      : flows_(flows), ends_(flows.size(), kNever), sending_(hosts), receiving_(hosts) {}

  void admit(std::uint32_t flow) { active_.push_back({flows_[flow].work, flow, false}); }

  // Nothing arrives between the last event and this one.
  void advance(Time now) {
    for (Active& each : active_) {
      if (!each.sends) continue;
      each.left -= now - now_;
      if (each.left == 0) ends_[each.flow] = now;
    }
    std::erase_if(active_, [](const Active& each) { return each.left == 0; });
    now_ = now;
  }

  // Returns when the next flow ends, if none arrives before.
  Time choose() {
    std::sort(active_.begin(), active_.end(), [](const Active& a, const Active& b) {
      return a.left != b.left ? a.left < b.left : a.flow < b.flow;
    });
    std::fill(sending_.begin(), sending_.end(), false);
    std::fill(receiving_.begin(), receiving_.end(), false);
    Time next = kNever;
    for (Active& each : active_) {
      const FluidFlow& flow = flows_[each.flow];
      each.sends = !sending_[flow.source] && !receiving_[flow.destination];
      if (!each.sends) continue;
      sending_[flow.source] = receiving_[flow.destination] = true;
      next = std::min(next, now_ + each.left);
    }
    return next;
  }

  [[nodiscard]] std::vector<Time> ends() && { return std::move(ends_); }

 private:
  std::span<const FluidFlow> flows_;
  std::vector<Time> ends_;
  std::vector<Active> active_;
  std::vector<bool> sending_;
  std::vector<bool> receiving_;
  Time now_ = 0;
};

void check(std::span<const FluidFlow> flows, std::uint32_t hosts) {
  Time before = 0;
  for (const FluidFlow& flow : flows) {
    if (flow.arrival < before) throw std::invalid_argument("flows must be in the order of their arrivals");
    if (flow.work <= 0) throw std::invalid_argument("a flow has nothing to send");
    if (flow.source >= hosts || flow.destination >= hosts) throw std::invalid_argument("there is no such host");
    before = flow.arrival;
  }
}

}  // namespace

std::vector<Time> srpt_ends(std::span<const FluidFlow> flows, std::uint32_t hosts, Time limit) {
  check(flows, hosts);
  Schedule schedule(flows, hosts);
  std::size_t arrived = 0;
  Time next_end = kNever;
  while (true) {
    const Time arrival = arrived < flows.size() ? flows[arrived].arrival : kNever;
    const Time now = std::min(arrival, next_end);
    if (now == kNever || now > limit) return std::move(schedule).ends();
    schedule.advance(now);
    while (arrived < flows.size() && flows[arrived].arrival == now) {
      schedule.admit(static_cast<std::uint32_t>(arrived++));
    }
    next_end = schedule.choose();
  }
}

}  // namespace fabric
