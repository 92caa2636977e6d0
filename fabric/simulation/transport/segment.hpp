// What a simulated packet carries, found by its PacketId: sequence numbers of a subflow and of its connection,
// counted in segments, and what an acknowledgement says.
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

enum class Carries : std::uint8_t { data, acknowledgement, syn, syn_acknowledgement, datagram };

struct alignas(64) Segment {
  Time sent = 0;            // an acknowledgement: of the segment it answers (RFC 7323)
  Seq seq = 0;              // an acknowledgement: the first segment the receiver misses
  Seq dsn = 0;              // the same of the connection
  std::uint32_t order = 0;  // which transmission of its subflow it was, or answers
  Seq window_end = 0;       // an acknowledgement: the connection's first segment without room (kNone: no limit)
  std::array<SackBlock, 3> blocks{};
  std::uint8_t block_count = 0;
  Carries carries = Carries::data;
  bool marked = false;  // an acknowledgement: what it answers had met congestion
};
static_assert(sizeof(Segment) == 64);

}  // namespace fabric
