// A source of packets of one size at a constant rate, and the count of those that arrive: UDP, as far as a network
// sees it. Its socket holds as many packets as senders let a host's queue grow to; it does not wait, and what the
// others have queued is not its own.
#pragma once

#include <cstdint>
#include <deque>

#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

struct DatagramSource {
  Path path;
  NicId source = kNone;
  NicId destination = kNone;
  std::uint32_t packets = 0;  // 0: no end
  Time start = 0;
  // The n-th is due n intervals after the start, rounded down to a picosecond: `part` of `rate_bps` is what the
  // rounding left over so far.
  Time interval = 0;
  std::int64_t rest = 0;
  std::int64_t rate_bps = 0;
  std::int64_t part = 0;
  std::uint32_t emitted = 0;
  std::deque<Time> held;      // when those of its packets leave that its host has queued
  std::uint32_t refused = 0;  // its socket was full
  std::uint32_t lost = 0;     // on its way
  std::uint32_t received = 0;
  std::uint8_t dscp = 0;

  [[nodiscard]] Time next_after(Time now) {
    part += rest;
    if (part < rate_bps) return now + interval;
    part -= rate_bps;
    return now + interval + 1;
  }
};

}  // namespace fabric
