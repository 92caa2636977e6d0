// A source of packets of one size at a constant rate (UDP), and the count of those that arrive. Its socket holds as
// many packets as senders let a host's queue grow to; packets that others have queued do not count.
#pragma once

#include <cstdint>
#include <deque>

#include "core/packet.hpp"
#include "core/units.hpp"
#include "simulation/options.hpp"

namespace fabric {

struct DatagramSource {
  Path path;
  NicId source = kNone;
  NicId destination = kNone;
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

struct Stack;
struct Tables;
class Network;

// Throws std::invalid_argument for a source that cannot exist.
void add_datagrams(Tables& tables, Network& network, const DatagramConfig& wanted);
void send_datagram(Stack& stack, std::uint32_t number, Time now);

}  // namespace fabric
