// Congestion control as its papers write it: what an acknowledged packet adds to a window, and what is left of
// one after a loss. A new one is a file beside this and a line in `kCongestionControls` (registry.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace fabric {

// What the subflows of a connection know of each other. Windows in packets, times in seconds.
struct PathState {
  double window = 0;
  double rtt_s = 0;         // 0: none of its packets was acknowledged yet
  double since_loss = 0;    // packets acknowledged since the last loss
  double between_loss = 0;  // and between the last two
};

using Paths = std::span<const PathState>;

inline constexpr double kMinWindow = 2.0;  // after a loss

struct CongestionControl {
  std::string_view name;
  double (*increase)(Paths, std::size_t i);    // packets a packet acknowledged, beyond slow start
  double (*after_loss)(Paths, std::size_t i);  // the window
  bool by_share_of_marks = false;              // backs off by how many packets are marked (RFC 8257)
};

inline double reno_increase(Paths paths, std::size_t i) { return 1.0 / paths[i].window; }
inline double half(Paths paths, std::size_t i) { return std::max(kMinWindow, paths[i].window / 2); }

// Of a path that has not been heard of nothing can be coupled: it counts for nothing with the others.
inline bool is_known(const PathState& path) { return path.rtt_s > 0; }
inline double rate(const PathState& path) { return path.window / path.rtt_s; }

struct Rates {
  double total = 0;
  double best = 0;
};
inline Rates rates(Paths paths) {
  Rates out;
  for (const PathState& path : paths) {
    if (!is_known(path)) continue;
    out.total += rate(path);
    out.best = std::max(out.best, rate(path));
  }
  return out;
}

inline double total_window(Paths paths) {
  double total = 0;
  for (const PathState& path : paths) total += path.window;
  return total;
}

}  // namespace fabric
