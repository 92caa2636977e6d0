#include "simulation/stack.hpp"

#include <utility>

namespace fabric {

Stack::Stack(NetworkConfig config, const TransportOptions& transport, const std::optional<NoiseConfig>& noise)
    : options(transport), network(std::move(config)), timers(network), clock(noise), segments(network.pool().capacity()),
      waiting(network.ports().size()) {
  network.prefer_huge_pages();
  segments.prefer_huge_pages();
}

}  // namespace fabric
