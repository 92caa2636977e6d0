// Sources of packets of one size at a constant rate (UDP), and the count of those that arrive. A source's socket holds as
// many packets as senders let a host's queue grow to; packets that others have queued do not count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "core/packet.hpp"
#include "core/units.hpp"
#include "simulation/options.hpp"
#include "simulation/stack.hpp"

namespace fabric {

struct DatagramSource {
  Path path;
  NicId source = kNone;
  NicId destination = kNone;
  std::uint32_t hash = 0;  // of its five-tuple
  std::uint32_t packets = 0;  // 0: no end
  Time start = 0;
  // Packet n is due n intervals after the start, rounded down to a picosecond. `part` of `rate_bps` is what the
  // rounding has left over so far.
  Time interval = 0;
  std::int64_t rest = 0;
  std::int64_t rate_bps = 0;
  std::int64_t part = 0;
  std::uint32_t emitted = 0;
  std::deque<Time> held;      // when those of its packets leave that are in the host's queue
  std::uint32_t refused = 0;  // its socket was full
  std::uint32_t received = 0;
  std::uint8_t dscp = 0;

  [[nodiscard]] Time next_after(Time now) {
    part += rest;
    if (part < rate_bps) return now + interval;
    part -= rate_bps;
    return now + interval + 1;
  }
};

// Throws std::invalid_argument for a source that cannot exist.
std::vector<DatagramSource> datagram_sources(const TransportOptions& options, Network& network,
                                             const std::vector<DatagramConfig>& wanted);

// The sources of the hosts of one partition. Partitions share `sources`.
class Datagrams {
 public:
  // Schedules the first packet of each source of the partition.
  Datagrams(Stack& stack, std::span<DatagramSource> sources, std::size_t partition);

  void send(std::uint32_t source, Time now);
  void received(PacketId id) {
    ++sources_[stack_.network.pool()[id].owner].received;
    stack_.network.pool().release(id);
  }
  [[nodiscard]] std::span<const DatagramSource> sources() const { return sources_; }

 private:
  Stack& stack_;
  std::span<DatagramSource> sources_;
};

}  // namespace fabric
