// BALIA: draft-walid-mptcp-congestion-control-04, section 3 (Peng et al., ToN 2016).
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline double balia_increase(Paths paths, std::size_t i) {
  if (!is_known(paths[i])) return reno_increase(paths, i);
  const Rates all = rates(paths);
  const double own = rate(paths[i]);
  const double alpha = all.best / own;
  return own / paths[i].rtt_s / (all.total * all.total) * (1 + alpha) / 2 * (4 + alpha) / 5;
}

inline double balia_after_loss(Paths paths, std::size_t i) {
  if (!is_known(paths[i])) return half(paths, i);
  const double alpha = rates(paths).best / rate(paths[i]);
  return std::max(kMinWindow, paths[i].window - paths[i].window / 2 * std::min(alpha, 1.5));
}

inline constexpr CongestionControl kBalia{"balia", balia_increase, balia_after_loss};

}  // namespace fabric
