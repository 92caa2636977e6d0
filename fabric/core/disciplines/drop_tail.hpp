// Drop-tail: a queue limited in packets, in bytes, or both drops the packets that arrive when it is full.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/disciplines/queue_length.hpp"
#include "core/units.hpp"

namespace fabric {

// A limit of 0 means none.
struct DropTail {
  std::uint32_t limit_pkts = 0;
  std::uint64_t limit_bytes = 0;

  [[nodiscard]] bool has_room(QueueLength queue, std::uint32_t bytes) const {
    return queue.pkts < most_pkts() && (limit_bytes == 0 || queue.bytes + bytes <= limit_bytes);
  }
  [[nodiscard]] std::uint32_t most_pkts() const { return limit_pkts != 0 ? limit_pkts : kNone; }

  // Counted in full packets if the limit is in bytes.
  [[nodiscard]] std::uint64_t places_left(QueueLength queue) const {
    const std::uint64_t of_packets = most_pkts() - queue.pkts;
    if (limit_bytes == 0) return of_packets;
    return std::min(of_packets, (limit_bytes - queue.bytes + kFullPacket - 1) / kFullPacket);
  }

 private:
  static constexpr std::uint64_t kFullPacket = 1500;
};

}  // namespace fabric
