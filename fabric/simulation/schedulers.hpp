// Schedulers of MPTCP connections: each chooses the subflow that carries a connection's next data. To add one, add its
// function and its record to `kSchedulers`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace fabric {

// What a scheduler knows about a subflow.
struct SubflowView {
  bool takes = false;    // whether it accepts more data now
  bool joined = true;    // whether it can send at all
  double srtt_s = 0;     // 0: not known yet
  double held_pkts = 0;  // given to it and not acknowledged
  double rate_pps = 0;   // its pacing rate; 0: not known yet
  double drain_s = 0;    // the time in which it sends what it holds; 0 if the rate is not known

  void hold(double pkts) {
    held_pkts = pkts;
    drain_s = rate_pps > 0 ? held_pkts / rate_pps : 0.0;
  }
  bool operator==(const SubflowView&) const = default;
};

struct Scheduler {
  std::string_view name;
  // Returns the number of a subflow, or kNone to wait. `last` is the one chosen before.
  std::uint32_t (*choose)(std::span<const SubflowView>, std::uint32_t last);
  // Bytes bound to a subflow at a time, as long as it has room in its buffer; 0: data is bound only when it is sent.
  std::uint32_t burst_bytes = 0;
};

// The fastest path first: among the subflows with room in their windows, the one with the smallest smoothed round-trip
// time (Paasch et al., CSWS 2014, section 3.1).
inline std::uint32_t least_rtt(std::span<const SubflowView> subflows, std::uint32_t /*last*/) {
  std::uint32_t best = kNone;
  for (std::uint32_t i = 0; i < subflows.size(); ++i) {
    if (subflows[i].takes && (best == kNone || subflows[i].srtt_s < subflows[best].srtt_s)) best = i;
  }
  return best;
}

inline constexpr Scheduler kMinRtt{"min_rtt", least_rtt};

// One segment to each subflow in turn (Paasch et al., CSWS 2014, section 3.1).
inline std::uint32_t next_in_turn(std::span<const SubflowView> subflows, std::uint32_t last) {
  const auto count = static_cast<std::uint32_t>(subflows.size());
  for (std::uint32_t step = 1; step <= count; ++step) {
    const std::uint32_t i = (last + step) % count;
    if (subflows[i].takes) return i;
  }
  return kNone;
}

inline constexpr Scheduler kRoundRobin{"round_robin", next_in_turn};

// The scheduler of upstream Linux: binds data early, 64 kB at a time, to the subflow that would empty its buffer first;
// if that one has no room, it waits. Subflows that have not joined do not count (mptcp_subflow_get_send and
// mptcp_subflow_active, net/mptcp/protocol.c).
inline std::uint32_t first_to_drain(std::span<const SubflowView> subflows, std::uint32_t /*last*/) {
  std::uint32_t best = kNone;
  for (std::uint32_t i = 0; i < subflows.size(); ++i) {
    if (!subflows[i].joined) continue;
    if (best == kNone || subflows[i].drain_s < subflows[best].drain_s) best = i;
  }
  return best != kNone && subflows[best].takes ? best : kNone;
}

inline constexpr Scheduler kBurst{"burst", first_to_drain, 65428};

inline constexpr std::array kSchedulers{&kMinRtt, &kBurst, &kRoundRobin};

inline const Scheduler& scheduler(std::string_view name) {
  for (const Scheduler* known : kSchedulers) {
    if (known->name == name) return *known;
  }
  throw std::invalid_argument("the simulator knows no scheduler '" + std::string(name) + "'");
}

}  // namespace fabric
