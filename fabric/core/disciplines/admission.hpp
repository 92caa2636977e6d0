// The disciplines that decide on arrival whether a queue takes a packet, applied one after the other. To add one, add a
// file beside this one, a member, and a line in `admits` and in `only_counts_packets`.
#pragma once

#include <cstdint>

#include "core/disciplines/drop_tail.hpp"
#include "core/disciplines/ecn_threshold.hpp"
#include "core/disciplines/queue_length.hpp"
#include "core/disciplines/random_drop.hpp"
#include "core/packet.hpp"
#include "core/random.hpp"

namespace fabric {

enum class Admitted : std::uint8_t { no, yes, marked };

struct Admission {
  DropTail tail;
  RandomDrop random;
  EcnThreshold ecn;

  [[nodiscard]] Admitted admits(Packet& packet, QueueLength queue, Random& generator) const {
    if (!tail.has_room(queue, packet.size_bytes)) return Admitted::no;
    if (random.places != 0 && random.refuses(tail.places_left(queue), generator)) return Admitted::no;
    return ecn.marks(packet, queue) ? Admitted::marked : Admitted::yes;
  }

  // Whether a queue below its limit in packets takes every packet. Most packets then need no check.
  [[nodiscard]] bool only_counts_packets() const {
    return tail.limit_bytes == 0 && random.places == 0 && ecn.pkts == 0;
  }
};

}  // namespace fabric
