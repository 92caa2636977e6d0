// Fully coupled: one window for all subflows together, which moves away from paths with loss (Wischik et al., NSDI
// 2011, section 2.2; Kelly and Voice, 2005).
#pragma once

#include "simulation/congestion/congestion.hpp"

namespace fabric {

inline double coupled_increase(Paths paths, std::size_t /*i*/) { return 1.0 / total_window(paths); }

inline double coupled_after_loss(Paths paths, std::size_t i) {
  return std::max(kMinWindow, paths[i].window - total_window(paths) / 2);
}

inline constexpr CongestionControl kCoupled{"coupled", coupled_increase, coupled_after_loss};

// EWTCP: n subflows, each with 1/n^2 of reno's increase, together get as much as one TCP flow on a shared bottleneck
// (Honda et al., PFLDNeT 2009; Wischik et al., NSDI 2011, section 2.1).
inline double ewtcp_increase(Paths paths, std::size_t i) {
  const auto n = static_cast<double>(paths.size());
  return reno_increase(paths, i) / (n * n);
}

inline constexpr CongestionControl kEwtcp{"ewtcp", ewtcp_increase, half};

// LIA, linked increases: RFC 6356, section 3, with all segments of one size.
inline double lia_increase(Paths paths, std::size_t i) {
  if (!is_known(paths[i])) return reno_increase(paths, i);
  double best = 0;
  double total = 0;
  for (const PathState& path : paths) {
    if (!is_known(path)) continue;
    best = std::max(best, rate(path) / path.rtt_s);
    total += rate(path);
  }
  return std::min(best / (total * total), 1.0 / paths[i].window);
}

inline constexpr CongestionControl kLia{"lia", lia_increase, half};

// OLIA: draft-khalili-mptcp-congestion-control-05, section 3 (Khalili et al., CoNEXT 2012). Windows move towards
// paths with little loss; the largest window shrinks in exchange.

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

// BALIA: draft-walid-mptcp-congestion-control-04, section 3 (Peng et al., ToN 2016).
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
