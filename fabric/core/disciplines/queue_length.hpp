// The length of a queue, the packet in transmission included.
#pragma once

#include <cstdint>

namespace fabric {

struct QueueLength {
  std::uint32_t pkts = 0;
  std::uint64_t bytes = 0;  // counted only where a discipline needs it
};

}  // namespace fabric
