// Random drop: a packet that would take the i-th of a queue's last n slots is dropped with probability i / (n + 1).
// Flows that send in lockstep (phase effects: Floyd and Jacobson, 1992) then do not lose in lockstep.
#pragma once

#include <cstdint>

#include "core/random.hpp"

namespace fabric {

struct RandomDrop {
  std::uint32_t places = 0;  // 0: none

  [[nodiscard]] bool refuses(std::uint64_t places_left, Random& random) const {
    return places_left <= places && random.below(places + 1) <= places - places_left;
  }
};

}  // namespace fabric
