// LetFlow (Vanini et al., NSDI 2017, section 3): every flowlet takes a random next hop. Flowlets shrink on congested
// paths, so that paths carry what they can without being measured.
#pragma once

#include <span>
#include <string_view>

#include "core/balancing/balancer.hpp"
#include "core/balancing/flowlets.hpp"
#include "core/random.hpp"

namespace fabric {

class LetFlow : public Balancer {
 public:
  static constexpr std::string_view kName = "letflow";

  LetFlow(Time gap, Random random) : flowlets_(gap), random_(random) {}

  [[nodiscard]] PortId choose(const Packet& /*packet*/, Steering& steering, std::span<const GroupMember> hops,
                              Time now) override {
    if (hops.size() == 1) return hops.front().port;
    FlowletTable::Entry& flowlet = flowlets_.of(steering.flow);
    if (!flowlets_.goes_on(flowlet, hops, now)) {
      flowlet.port_plus_1 = hops[random_.below(static_cast<std::uint32_t>(hops.size()))].port + 1;
    }
    flowlet.last = now;
    return flowlet.port();
  }

 private:
  FlowletTable flowlets_;
  Random random_;
};

}  // namespace fabric
