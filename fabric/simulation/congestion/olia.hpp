// OLIA: draft-khalili-mptcp-congestion-control-05, section 3 (Khalili et al., CoNEXT 2012). Windows move towards
// paths with little loss; the largest window shrinks in exchange.
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

// Square of the packets between losses, over the round-trip time.
inline double olia_quality(const PathState& path) {
  const double packets = std::max(path.since_loss, path.between_loss);
  return packets * packets / path.rtt_s;
}

// The draft's alpha_i: positive on the best paths whose window is not the largest, negative on the largest.
inline double olia_alpha(Paths paths, std::size_t i) {
  double known = 0;
  double best = 0;
  double largest = 0;
  for (const PathState& path : paths) {
    if (!is_known(path)) continue;
    ++known;
    best = std::max(best, olia_quality(path));
    largest = std::max(largest, path.window);
  }
  const auto is_best = [best](const PathState& path) { return olia_quality(path) >= best; };
  const auto is_largest = [largest](const PathState& path) { return path.window >= largest; };
  double collected = 0;
  double with_largest = 0;
  for (const PathState& path : paths) {
    if (!is_known(path)) continue;
    if (is_largest(path)) {
      ++with_largest;
    } else if (is_best(path)) {
      ++collected;
    }
  }
  if (collected == 0) return 0;
  if (is_largest(paths[i])) return -1 / known / with_largest;
  return is_best(paths[i]) ? 1 / known / collected : 0;
}

inline double olia_increase(Paths paths, std::size_t i) {
  if (!is_known(paths[i])) return reno_increase(paths, i);
  const PathState& own = paths[i];
  const double total = rates(paths).total;
  return rate(own) / own.rtt_s / (total * total) + olia_alpha(paths, i) / own.window;
}

inline constexpr CongestionControl kOlia{"olia", olia_increase, half};

}  // namespace fabric
