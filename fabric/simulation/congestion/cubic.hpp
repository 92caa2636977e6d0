// CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction, or what Reno would have if
// that is more. Slow start is the usual one: HyStart++ (RFC 9406), which Linux has, is not here.
#pragma once

#include <algorithm>
#include <cstddef>

#include "simulation/congestion/congestion.hpp"

namespace fabric {

// Of one growth of the window. Windows in packets, times in seconds.
struct CubicState {
  double prior = 0;     // the window before the last reduction
  double w_max = 0;     // the same, or less with fast convergence; 0 after a timeout
  double k = 0;         // how long it takes to reach it again
  double w_est = 0;     // what Reno's window would be
  double epoch_s = -1;  // when growth began after the last reduction; below 0: not yet
};

struct CubicPath {
  CubicState state;
  CubicState before_loss;  // restored after a spurious loss (section 4.9)
};

namespace cubic {

inline constexpr double kC = 0.4;
inline constexpr double kBeta = 0.7;
inline constexpr double kAlpha = 3 * (1 - kBeta) / (1 + kBeta);  // section 4.3

// By Newton's method, with the same result on every machine.
inline double root(double value) {
  if (value <= 0) return 0;
  double x = std::max(1.0, value);
  for (int i = 0; i < 100; ++i) {
    const double next = (2 * x + value / (x * x)) / 3;
    if (next >= x) break;
    x = next;
  }
  return x;
}

// The window after `fresh` acknowledged packets in congestion avoidance (sections 4.2 to 4.5).
inline double grown(CubicState& state, double window, double fresh, double now_s, double rtt_s) {
  if (state.epoch_s < 0) {
    state.epoch_s = now_s;
    state.w_est = window;
    state.w_max = std::max(state.w_max, window);
    state.k = root((state.w_max - window) / kC);
  }
  state.w_est += (state.w_est >= state.prior ? 1.0 : kAlpha) * fresh / window;
  const double t = now_s - state.epoch_s + rtt_s - state.k;
  const double target = std::clamp(kC * t * t * t + state.w_max, window, 1.5 * window);
  return std::max(window + (target - window) * std::min(1.0, fresh / window), state.w_est);
}

// Notes a reduction (sections 4.6 and 4.7).
inline void reduced(CubicState& state, double window) {
  state.prior = window;
  state.w_max = window < state.w_max ? window * (1 + kBeta) / 2 : window;
  state.epoch_s = -1;
}

// Notes a timeout: growth after slow start begins at the window of then, with K = 0 (section 4.8).
inline void timed_out(CubicState& state) {
  state.w_max = 0;
  state.epoch_s = -1;
}

inline double after_loss(Paths paths, std::size_t i) { return std::max(kMinWindow, paths[i].window * kBeta); }

}  // namespace cubic

// Growth depends on time, so tcp.cpp calls `grown`; `increase` is never called.
inline constexpr CongestionControl kCubic{.name = "cubic", .increase = reno_increase, .after_loss = cubic::after_loss,
                                          .by_time = true};

}  // namespace fabric
