// What a discipline may know of a packet beside its descriptor: how urgent it is, and its flow. The descriptor's cache
// line has no room for it, so it has a table of its own, which exists only where a discipline reads it.
#pragma once

#include <cstdint>
#include <limits>

namespace fabric {

// A smaller rank goes first: what remains of the packet's flow, in bytes. The flow is any number that its packets share.
struct Precedence {
  static constexpr std::uint32_t kFirst = 0;
  static constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t rank = kLast;
  std::uint32_t flow = 0;
};

}  // namespace fabric
