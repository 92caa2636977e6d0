#include "simulation/stack.hpp"

#include <stdexcept>
#include <utility>

namespace fabric {

Stack::Stack(NetworkConfig config, const TransportOptions& transport, const std::optional<NoiseConfig>& noise)
    : options(transport), network(std::move(config)), timers(network), clock(noise), segments(network.pool().capacity()),
      blocks(network.pool().capacity()), waiting(network.ports().size()) {
  for (const Nic& nic : network.router().nics()) {
    const bool waits = nic.uplink != kNone && options.nic_queue_pkts != kNone;
    if (!waits || !network.ports()[nic.uplink].is_scheduled()) continue;
    throw std::invalid_argument("senders wait for departures of their host's queue, which only a FIFO knows");
  }
  network.prefer_huge_pages();
  segments.prefer_huge_pages();
}

}  // namespace fabric
