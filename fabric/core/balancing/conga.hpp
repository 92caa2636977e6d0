// CONGA (Alizadeh et al., SIGCOMM 2014): in a network of leaves and spines, a leaf sends every flowlet over the uplink
// whose most congested link towards the destination's leaf is the least congested. Section numbers are the paper's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/balancing/balancer.hpp"
#include "core/balancing/flowlets.hpp"
#include "core/port.hpp"
#include "core/random.hpp"
#include "core/units.hpp"

namespace fabric {

// Discounting rate estimator (section 3.2): counts the bytes sent, of which a share of alpha is forgotten in every
// interval of alpha tau. The count is then the rate times tau.
class RateEstimator {
 public:
  static constexpr unsigned kMetricBits = 3;  // section 3.6: Q = 3

  explicit RateEstimator(Time tau) : tau_(tau), interval_(std::max<Time>(1, tau / kIntervals)) {}

  void sent(std::uint32_t bytes, Time now) {
    forget(now);
    bytes_ += bytes;
  }

  // The share of the rate that is in use, as a number of kMetricBits bits.
  [[nodiscard]] std::uint8_t metric(std::int64_t rate_bps, Time now) {
    forget(now);
    const double most = static_cast<double>(rate_bps) / 8 * (static_cast<double>(tau_) / static_cast<double>(kSecond));
    const double steps = bytes_ / most * (1U << kMetricBits);
    return static_cast<std::uint8_t>(std::min(steps, double{(1U << kMetricBits) - 1}));
  }

 private:
  // alpha = 1/8. The paper states tau only; a power of two is a shift in a switch.
  static constexpr int kIntervals = 8;
  static constexpr Time kForgotten = 64 * kIntervals;  // intervals after which less than 10^-29 is left

  void forget(Time now) {
    Time intervals = now / interval_ - at_;
    if (intervals <= 0) return;
    at_ += intervals;
    if (intervals > kForgotten) bytes_ = 0;
    for (intervals = std::min(intervals, kForgotten); intervals > 0 && bytes_ > 0; --intervals) {
      bytes_ *= 1.0 - 1.0 / kIntervals;
    }
  }

  Time tau_;
  Time interval_;
  Time at_ = 0;  // number of the interval
  double bytes_ = 0;
};

class Conga : public Balancer {
 public:
  static constexpr std::string_view kName = "conga";

  // `leaf` is the switch's column of the forwarding table, kNone for a spine; `uplinks` are its ports to other switches.
  Conga(Time gap, Time tau, std::uint32_t leaf, std::size_t leaves, std::vector<PortId> uplinks, std::span<Port> ports,
        Random random)
      : tau_(tau), leaf_(leaf), uplinks_(std::move(uplinks)), ports_(ports), random_(random), flowlets_(gap) {
    if (leaf_ != kNone) {
      to_.resize(leaves);
      from_.resize(leaves);
    }
  }

  [[nodiscard]] PortId choose(const Packet& packet, Steering& steering, std::span<const GroupMember> hops,
                              Time now) override {
    Overlay& overlay = steering.overlay;
    PortId port = hops.front().port;
    if (overlay.source_leaf == leaf_) {
      port = uplink_for(steering, hops, now);
      overlay.path = path_of(port);
      overlay.congestion = 0;
      give_feedback(overlay, steering.destination_leaf, now);
    } else {
      overlay.congestion = std::max(overlay.congestion, metric(port, now));  // section 3.3, step 2
    }
    estimator(port).sent(packet.size_bytes, now);
    return port;
  }

  // Section 3.3, steps 3 and 4.
  void leaves(const Steering& steering, Time now) override {
    const Overlay& overlay = steering.overlay;
    if (overlay.source_leaf == leaf_ || leaf_ == kNone) return;
    FromLeaf& from = from_[overlay.source_leaf];
    if (from.paths.size() <= overlay.path) from.paths.resize(overlay.path + std::size_t{1});
    Measured& measured = from.paths[overlay.path];
    measured.changed = measured.changed || !measured.known || measured.metric != overlay.congestion;
    measured.known = true;
    measured.metric = overlay.congestion;
    measured.updated = now;
    if (overlay.feedback_path == Overlay::kNoPath) return;
    std::vector<Remote>& to = to_[overlay.source_leaf];
    if (to.size() <= overlay.feedback_path) to.resize(overlay.feedback_path + std::size_t{1});
    to[overlay.feedback_path] = {overlay.feedback, now};
  }

 private:
  // What a leaf knows of a path to another one, and when it learnt it.
  struct Remote {
    std::uint8_t metric = 0;
    Time updated = 0;
  };
  // What a leaf has measured of a path from another one, and whether that is news to it.
  struct Measured {
    std::uint8_t metric = 0;
    bool known = false;
    bool changed = false;
    Time updated = 0;
  };
  struct FromLeaf {
    std::vector<Measured> paths;
    std::size_t next = 0;
  };

  // Section 3.3: a metric that is not updated for long, e.g. 10 ms, gradually decays to 0, so that a path which was
  // congested is tried again. 64 tau are 10 ms for the paper's tau. What the other leaf has not measured for as long
  // is not fed back: it would be no update.
  [[nodiscard]] Time long_ago() const { return 64 * tau_; }
  [[nodiscard]] Time level_decays_in() const { return 8 * tau_; }

  [[nodiscard]] PortId uplink_for(const Steering& steering, std::span<const GroupMember> hops, Time now) {
    FlowletTable::Entry& flowlet = flowlets_.of(steering.flow);
    if (!flowlets_.goes_on(flowlet, hops, now)) {
      flowlet.port_plus_1 = best(flowlet.port(), steering.destination_leaf, hops, now) + 1;
    }
    flowlet.last = now;
    return flowlet.port();
  }

  // Section 3.5: the least of the larger of both metrics. The flow moves only if another uplink is strictly better.
  [[nodiscard]] PortId best(PortId current, std::uint32_t leaf, std::span<const GroupMember> hops, Time now) {
    best_.clear();
    std::uint8_t least = 0xFF;
    for (const GroupMember& hop : hops) {
      const std::uint8_t congestion = std::max(metric(hop.port, now), remote(leaf, path_of(hop.port), now));
      if (congestion < least) best_.clear();
      least = std::min(least, congestion);
      if (congestion == least) best_.push_back(hop.port);
    }
    if (std::ranges::find(best_, current) != best_.end()) return current;
    return best_[random_.below(static_cast<std::uint32_t>(best_.size()))];
  }

  [[nodiscard]] std::uint8_t remote(std::uint32_t leaf, std::uint8_t path, Time now) const {
    if (path >= to_[leaf].size()) return 0;
    const Remote& known = to_[leaf][path];
    const Time levels = std::max<Time>(0, now - known.updated - long_ago()) / level_decays_in();
    return levels >= known.metric ? 0 : static_cast<std::uint8_t>(known.metric - levels);
  }

  // Section 3.3, step 4: one metric a packet, in turns, first those that have changed since they were last fed back.
  void give_feedback(Overlay& overlay, std::uint32_t leaf, Time now) {
    overlay.feedback_path = Overlay::kNoPath;
    FromLeaf& from = from_[leaf];
    const std::size_t count = from.paths.size();
    for (const bool only_changed : {true, false}) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t path = (from.next + i) % count;
        Measured& measured = from.paths[path];
        measured.known = measured.known && now - measured.updated <= long_ago();
        if (!measured.known || (only_changed && !measured.changed)) continue;
        overlay.feedback_path = static_cast<std::uint8_t>(path);
        overlay.feedback = measured.metric;
        measured.changed = false;
        from.next = path + 1;
        return;
      }
    }
  }

  [[nodiscard]] std::uint8_t path_of(PortId uplink) const {
    return static_cast<std::uint8_t>(std::ranges::find(uplinks_, uplink) - uplinks_.begin());
  }
  [[nodiscard]] RateEstimator& estimator(PortId port) { return estimators_.try_emplace(port, tau_).first->second; }
  [[nodiscard]] std::uint8_t metric(PortId port, Time now) {
    return estimator(port).metric(ports_[port].config().rate_bps, now);
  }

  Time tau_;
  std::uint32_t leaf_;
  std::vector<PortId> uplinks_;
  std::span<Port> ports_;
  Random random_;
  FlowletTable flowlets_;
  std::unordered_map<PortId, RateEstimator> estimators_;
  std::vector<std::vector<Remote>> to_;  // Congestion-To-Leaf, by leaf and path
  std::vector<FromLeaf> from_;           // Congestion-From-Leaf
  std::vector<PortId> best_;
};

}  // namespace fabric
