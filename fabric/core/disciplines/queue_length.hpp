// What a queue holds, the packet in transmission included.
#pragma once

#include <cstdint>

namespace fabric {

struct QueueLength {
  std::uint32_t pkts = 0;
  std::uint64_t bytes = 0;  // kept where something asks for it
};

}  // namespace fabric
