#include "simulation/schedulers/data_scheduler.hpp"

#include <algorithm>
#include <cassert>

#include "simulation/transport/sender.hpp"
#include "simulation/transport/socket_info.hpp"

namespace fabric {

namespace {

// Linux lets a socket's buffer grow to twice its window, counted with the overhead of the packets it allocates for
// (tcp_sndbuf_expand, net/ipv4/tcp_input.c). With packets of the usual size that is three windows.
constexpr double kWindowsHeld = 3;
// net.ipv4.tcp_pacing_ss_ratio and tcp_pacing_ca_ratio.
constexpr double kPacedInSlowStart = 2.0;
constexpr double kPaced = 1.2;

}  // namespace

void DataScheduler::distribute(Time now) {
  if (!connection_.multipath()) return Sender(stack_, connection_.first).send_all(now);
  connection_.blocked = false;
  const std::span<SubflowView> views = stack_.views.subspan(connection_.first, connection_.count);
  for (std::uint32_t i = 0; i < connection_.count; ++i) {
    const std::uint32_t subflow = connection_.first + i;
    if (!connection_.is_settled(subflow)) views[i] = view(subflow);
    assert(views[i] == view(subflow));
  }
  if (binds_early()) return distribute_early(now);
  for (;;) {
    const std::uint32_t chosen = stack_.options.scheduler->choose(views, connection_.last_chosen);
    if (chosen == kNone) return;
    if (Sender(stack_, connection_.first + chosen).send_one(now, false)) {
      connection_.last_chosen = chosen;
    } else {
      views[chosen].takes = false;
    }
  }
}

void DataScheduler::distribute_early(Time now) {
  bind();
  for (std::uint32_t i = connection_.first; i < connection_.first + connection_.count; ++i) {
    if (!connection_.is_settled(i)) {
      serve(i, now);
    } else {
      assert(!Sender(stack_, i).send_one(now, false));
    }
  }
}

// A subflow that had no window at once, and waits for nothing else, would have none until something happens to it.
void DataScheduler::serve(std::uint32_t subflow, Time now) {
  const SenderState& sender = stack_.subflows[subflow].sender;
  if (!sender.busy) SocketInfo(stack_, subflow).update(now);
  const std::uint32_t before = sender.transmissions;
  Sender(stack_, subflow).send_all(now);
  const bool sends = connection_.open && sender.established && !sender.probing && sender.busy;
  if (sends && sender.limited_by_window && sender.transmissions == before) connection_.settle(subflow);
}

// Binds data to subflows as long as they have room in their buffers.
void DataScheduler::bind() {
  const std::span<SubflowView> views = stack_.views.subspan(connection_.first, connection_.count);
  const Scheduler& scheduler = *stack_.options.scheduler;
  while (connection_.has_new(stack_.options.send_buffer_pkts)) {
    if (connection_.burst_left == 0 || !views[connection_.last_chosen].takes) {
      const std::uint32_t chosen = scheduler.choose(views, connection_.last_chosen);
      if (chosen == kNone) return;
      connection_.last_chosen = chosen;
      connection_.burst_left = std::max(1U, scheduler.burst_bytes / stack_.options.payload_bytes);
    }
    SubflowView& chosen = views[connection_.last_chosen];
    SenderState& sender = stack_.subflows[connection_.first + connection_.last_chosen].sender;
    sender.bound.push(connection_.next++);
    --connection_.burst_left;
    chosen.hold(chosen.held_pkts + 1);
    chosen.takes = chosen.held_pkts < sender.max_held_pkts;
  }
}

SubflowView DataScheduler::view(std::uint32_t subflow) {
  const TransportOptions& options = stack_.options;
  SenderState& sender = stack_.subflows[subflow].sender;
  const PathState& path = stack_.paths[subflow];
  SubflowView out{.takes = sender.established, .joined = sender.established, .srtt_s = path.rtt_s};
  if (options.scheduler->burst_bytes == 0) return out;
  sender.max_held_pkts = std::max(sender.max_held_pkts, kWindowsHeld * std::max(path.window, options.initial_window));
  if (options.subflow_buffer_pkts != 0) {
    sender.max_held_pkts = std::min(sender.max_held_pkts, static_cast<double>(options.subflow_buffer_pkts));
  }
  const double pacing = sender.in_slow_start(path.window) ? kPacedInSlowStart : kPaced;
  out.rate_pps = path.rtt_s > 0 ? pacing * path.window / path.rtt_s : 0;
  out.hold(static_cast<double>(sender.bound.size()) + sender.board.outstanding());
  out.takes = sender.established && out.held_pkts < sender.max_held_pkts;
  return out;
}

bool DataScheduler::has_data_for(std::uint32_t subflow) {
  if (connection_.has_reinjection(subflow)) return true;
  SeqQueue& bound = stack_.subflows[subflow].sender.bound;
  while (!bound.empty() && before(bound.front(), connection_.una)) bound.pop();  // another subflow has carried it
  if (!bound.empty()) return true;
  return !binds_early() && connection_.has_new(stack_.options.send_buffer_pkts);
}

Seq DataScheduler::take_for(std::uint32_t subflow) {
  if (connection_.has_reinjection(subflow)) return connection_.to_reinject[connection_.reinjected++].dsn;
  SeqQueue& bound = stack_.subflows[subflow].sender.bound;
  if (bound.empty()) return connection_.next++;
  const Seq dsn = bound.front();
  bound.pop();
  return dsn;
}

// A subflow that is alone keeps its data: no other could carry it.
void DataScheduler::reinject(std::uint32_t subflow, Time now) {
  bool alone = true;
  for (std::uint32_t i = connection_.first; i < connection_.first + connection_.count; ++i) {
    alone = alone && (i == subflow || !stack_.subflows[i].sender.established);
  }
  if (alone) return;
  const auto give = [&](Seq dsn) {
    if (!before(dsn, connection_.una)) connection_.to_reinject.push_back({dsn, subflow});
  };
  SenderState& sender = stack_.subflows[subflow].sender;
  sender.board.each_to_reinject(give);
  sender.bound.each(give);
  sender.bound = {};
  distribute(now);
}

}  // namespace fabric
