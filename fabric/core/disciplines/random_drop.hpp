// The last places of a queue are given by chance: of the last n the i-th is refused with probability i / (n + 1).
// Flows that send in step (phase effects: Floyd and Jacobson, 1992) then do not lose in step.
#pragma once

#include <cstdint>

#include "core/random.hpp"

namespace fabric {

struct RandomDrop {
  std::uint32_t places = 0;  // 0: chance has none

  [[nodiscard]] bool refuses(std::uint64_t places_left, Random& random) const {
    return places_left <= places && random.below(places + 1) <= places - places_left;
  }
};

}  // namespace fabric
