// The content of a simulated packet, found by its PacketId: sequence numbers of the subflow and of the connection,
// counted in segments, and the fields of an acknowledgement. Most acknowledgements report no blocks, so those are in a
// table of their own, whose memory is used only where packets are lost or reordered.
#pragma once

#include <array>
#include <cstdint>

#include "core/units.hpp"

namespace fabric {

using Seq = std::uint32_t;

// Sequence numbers [first, end) that a receiver holds beyond the first it misses (RFC 2018).
struct SackBlock {
  Seq first = 0;
  Seq end = 0;
};

enum class Carries : std::uint8_t { data, acknowledgement, syn, syn_acknowledgement, datagram, probe, nack, pull };

using SackBlocks = std::array<SackBlock, 3>;

struct alignas(32) Segment {
  Time sent = 0;            // in an acknowledgement: of the segment it answers (RFC 7323)
  Seq seq = 0;              // in an acknowledgement: the first segment the receiver misses
  Seq dsn = 0;              // the same of the connection
  std::uint32_t order = 0;  // number of the transmission it is, or answers
  Seq window_end = 0;       // in an acknowledgement: the connection's first segment without room (kNone: no limit)
  std::uint8_t block_count = 0;
  Carries carries = Carries::data;
  bool marked = false;  // in an acknowledgement: the segment it answers was marked
};
static_assert(sizeof(Segment) == 32);

inline bool before(Seq a, Seq b) { return static_cast<std::int32_t>(a - b) < 0; }

struct Acknowledgement : Segment {
  SackBlocks blocks{};
};

}  // namespace fabric
