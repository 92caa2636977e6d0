// Congestion control as its papers write it: the increase of a window for an acknowledged packet, and the window after
// a loss. To add one, add a file beside this one and a line in `kCongestionControls` (registry.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace fabric {

// What the subflows of a connection know about each other. Windows in packets, times in seconds.
struct PathState {
  double window = 0;
  double rtt_s = 0;         // 0: no packet was acknowledged yet
  double since_loss = 0;    // packets acknowledged since the last loss
  double between_loss = 0;  // and between the last two
};

using Paths = std::span<const PathState>;

inline constexpr double kMinWindow = 2.0;  // after a loss

struct CongestionControl {
  std::string_view name;
  // Per acknowledged packet, in congestion avoidance. nullptr: no acknowledgement, loss or timeout changes the window.
  double (*increase)(Paths, std::size_t i);
  double (*after_loss)(Paths, std::size_t i);  // the window
  // The window, by the share of packets that were marked (RFC 8257). nullptr: marks are losses.
  double (*after_marks)(double window, double share) = nullptr;
  bool by_time = false;   // growth depends on the time since a loss: CUBIC (cubic.hpp)
  bool by_agent = false;  // an agent sets the window (simulation/ccp/)
};

inline double reno_increase(Paths paths, std::size_t i) { return 1.0 / paths[i].window; }
inline double half(Paths paths, std::size_t i) { return std::max(kMinWindow, paths[i].window / 2); }

// A path without a round-trip time cannot be coupled: the others ignore it.
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

// One packet per window, and half the window after a loss (RFC 5681). Subflows are not coupled.
inline constexpr CongestionControl kReno{"reno", reno_increase, half};

// The two senders of pFabric (Alizadeh et al., SIGCOMM 2013, section 4.3). minTCP has TCP's slow start and additive
// increase; its rules for timeouts and probes are in tcp.hpp. LineRate always has its first window, a bandwidth-delay
// product, in the network.
inline double same_window(Paths paths, std::size_t i) { return paths[i].window; }

inline constexpr CongestionControl kMinTcp{"mintcp", reno_increase, half};
inline constexpr CongestionControl kLineRate{"linerate", nullptr, same_window};

// The window is an agent's (simulation/ccp/): losses, timeouts and acknowledgements change it through the datapath.
inline constexpr CongestionControl kByAgent{.name = "ccp", .increase = nullptr, .after_loss = same_window, .by_agent = true};

}  // namespace fabric
