#include "simulation/stack.hpp"

#include <stdexcept>
#include <utility>

namespace fabric {

Stack::Stack(Tables& tables, Network part, std::size_t partition, const std::optional<NoiseConfig>& noise)
    : options(tables.options), network(std::move(part)), timers(network), clock(noise),
      segments(&tables.segments[0], tables.segments.capacity()), blocks(&tables.blocks[0], tables.blocks.capacity()),
      connections(tables.connections), subflows(tables.subflows), paths(tables.paths), views(tables.views),
      clocks(tables.clocks), cubics(tables.cubics), datagrams(tables.datagrams), waiting(tables.waiting),
      lost_datagrams(tables.datagrams.size()), random_(options.processing_seed, static_cast<std::uint32_t>(partition)) {
  for (const Nic& nic : network.router().nics()) {
    const bool waits = nic.uplink != kNone && options.nic_queue_pkts != kNone;
    if (!waits || !network.ports()[nic.uplink].is_scheduled()) continue;
    throw std::invalid_argument("senders wait for departures of their host's queue, which only a FIFO knows");
  }
}

}  // namespace fabric
