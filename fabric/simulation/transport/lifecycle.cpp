#include "simulation/transport/lifecycle.hpp"

#include <algorithm>
#include <vector>

#include "simulation/ccp/datapath.hpp"
#include "simulation/flows.hpp"
#include "simulation/schedulers/data_scheduler.hpp"
#include "simulation/transport/handshake.hpp"
#include "simulation/transport/socket_info.hpp"

namespace fabric {

void Lifecycle::start(Time now) {
  connection_.open = true;
  connection_.started = now;
  if (stack_.options.persistent) take_over_idle();
  if (stack_.options.handshake) return Handshake(stack_, connection_.first).connect(now);
  stack_.subflows[connection_.first].sender.established = true;
  first_established(now);
  if (connection_.alone) {
    DataScheduler(stack_, connection_).distribute(now);
    SocketInfo(stack_, connection_.first).update(now);
  }
}

std::uint64_t Lifecycle::pair() const {
  const Subflow& first = stack_.subflows[connection_.first];
  return std::uint64_t{first.source} << 32 | first.destination;
}

// The flow goes on where the latest one ended on a connection that is idle now.
void Lifecycle::take_over_idle() {
  std::vector<std::uint32_t>& idle = stack_.idle[pair()];
  if (idle.empty()) return;
  const Connection& before = stack_.connections[idle.back()];
  idle.pop_back();
  for (std::uint32_t i = 0; i < std::min(before.count, connection_.count); ++i) {
    const SenderState& from = stack_.subflows[before.first + i].sender;
    SenderState& to = stack_.subflows[connection_.first + i].sender;
    to.ssthresh = from.ssthresh;
    to.rtt = from.rtt;
    to.rto = from.rto;
    to.alpha = from.alpha;
    to.dup_threshold = from.dup_threshold;
    stack_.paths[connection_.first + i] = stack_.paths[before.first + i];
  }
}

void Lifecycle::first_established(Time now) {
  const TransportOptions& options = stack_.options;
  connection_.alone = true;
  const bool waits = options.join_after != 0 || options.join_after_bytes != 0 || options.on_demand;
  if (!connection_.multipath() || !waits) return join(now);
  if (options.join_after != 0) stack_.timers.schedule(Alarm::join, number_, stack_.clock.after(now, options.join_after));
}

void Lifecycle::join(Time now) {
  if (!connection_.open || !connection_.alone) return;
  connection_.alone = false;
  connection_.settled = 0;
  const std::uint32_t end = connection_.first + connection_.count;
  if (stack_.options.handshake) {
    for (std::uint32_t i = connection_.first + 1; i < end; ++i) Handshake(stack_, i).connect(now);
    return;
  }
  for (std::uint32_t i = connection_.first + 1; i < end; ++i) stack_.subflows[i].sender.established = true;
  DataScheduler(stack_, connection_).distribute(now);
  for (std::uint32_t i = connection_.first; i < end; ++i) SocketInfo(stack_, i).update(now);
}

bool Lifecycle::open_subflow(std::uint32_t subflow, Time now) {
  SenderState& sender = stack_.subflows[subflow].sender;
  const bool connecting = sender.retransmission.at != kNever;
  if (!connection_.open || !connection_.alone || sender.established || connecting) return false;
  begin_anew(subflow);
  if (stack_.options.handshake) {
    Handshake(stack_, subflow).connect(now);
    return true;
  }
  sender.established = true;
  DataScheduler(stack_, connection_).distribute(now);
  SocketInfo(stack_, subflow).update(now);
  return true;
}

// Its sequence numbers go on where they ended, so that what is still under way from before counts as old.
void Lifecycle::begin_anew(std::uint32_t number) {
  Subflow& subflow = stack_.subflows[number];
  SenderState& sender = subflow.sender;
  const TransportOptions& options = stack_.options;
  const Seq next = sender.board.next();
  connection_.unsettle(number);
  sender.ssthresh = options.initial_ssthresh;
  sender.rtt = {};
  sender.rto = first_rto(options, stack_.network, subflow);
  sender.recover = sender.retransmit_next = sender.alpha_end = sender.reduced_until = next;
  sender.delivered_order = sender.transmissions;
  sender.dup_acks = 0;
  sender.dup_threshold = options.dup_threshold;
  sender.inflation = 0;
  sender.backoff = 0;
  sender.recovery = Recovery::open;
  sender.limited_by_window = sender.probing = false;
  sender.reduction = {};
  sender.before_loss = {};
  sender.max_held_pkts = 0;
  sender.alpha = 1.0;
  sender.acked = sender.acked_marked = 0;
  subflow.receiver.arrivals.restart(next);
  subflow.receiver.delayed.at = kNever;
  subflow.receiver.block_count = subflow.receiver.unanswered = 0;
}

bool Lifecycle::close_subflow(std::uint32_t number, Time now) {
  SenderState& sender = stack_.subflows[number].sender;
  const bool connecting = !sender.established && sender.retransmission.at != kNever;
  const bool there = sender.established || connecting;
  if (!connection_.open || number == connection_.first || !there) return false;
  connection_.unsettle(number);
  sender.established = false;
  sender.retransmission.at = kNever;
  stack_.paths[number] = {.window = stack_.options.initial_window};  // the others' windows no longer depend on it
  if (!stack_.cubics.empty()) stack_.cubics[number] = {};
  for (Reinjection& waiting : connection_.to_reinject) waiting.from = number;  // any other subflow may carry it
  sender.abandoned += sender.board.outstanding();
  DataScheduler(stack_, connection_).reinject(number, now);
  sender.board.close();
  SocketInfo(stack_, number).update(now);
  return true;
}

void Lifecycle::close(Time now) {
  connection_.open = false;
  connection_.to_reinject = {};
  for (std::uint32_t i = connection_.first; i < connection_.first + connection_.count; ++i) {
    Subflow& subflow = stack_.subflows[i];
    if (connection_.control->by_agent) Datapath(stack_, i).closed(now);
    subflow.sender.retransmission.at = kNever;
    subflow.sender.board.close();
    subflow.sender.bound = {};
    SocketInfo(stack_, i).update(now);
  }
  if (stack_.options.persistent) stack_.idle[pair()].push_back(number_);
  if (connection_.then == kNone) return;
  stack_.timers.schedule(Alarm::follow, connection_.then, now + stack_.connections[connection_.then].start);
}

}  // namespace fabric
