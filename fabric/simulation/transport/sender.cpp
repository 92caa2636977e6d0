#include "simulation/transport/sender.hpp"

#include <algorithm>

#include "simulation/ccp/datapath.hpp"
#include "simulation/schedulers/data_scheduler.hpp"
#include "simulation/transport/lifecycle.hpp"
#include "simulation/transport/loss_recovery.hpp"
#include "simulation/transport/socket_info.hpp"

namespace fabric {

bool Sender::send_one(Time now, bool has_turn) {
  const Scoreboard& board = sender_.board;
  if (!connection_.open || !sender_.established || sender_.probing) return false;
  const bool retransmission = options().sack ? board.something_lost() : before(sender_.retransmit_next, board.next());
  sender_.limited_by_window = !has_window(retransmission);
  if (sender_.limited_by_window) return false;
  const bool watched = connection_.control->by_agent && stack_.agents->watch_sending();
  if (watched && !Datapath(*this).may_send(now)) return false;
  if (!retransmission && !DataScheduler(stack_, connection_).has_data_for(number_)) {
    connection_.blocked = true;
    if (board.outstanding() == 0 || options().receive_buffer_pkts != 0) SocketInfo(*this).update(now);
    return false;
  }
  if (subflow_.owns_first_port) {
    HostQueue queue(stack_, subflow_.forward.ports[0]);
    if (queue.is_full(now) || (!has_turn && queue.is_claimed())) {
      queue.wait(number_);
      return false;
    }
  }
  connection_.unsettle(number_);
  ++sender_.transmissions;
  --sender_.reduction.quota;
  ++sender_.reduction.sent;
  retransmission ? send_lost(now) : send_new(now);
  if (watched) Datapath(*this).sent(connection_.payload_bytes, now);
  return true;
}

void Sender::send_lost(Time now) {
  Scoreboard& board = sender_.board;
  ++sender_.retransmits;
  const Seq seq = options().sack ? board.retransmit(sender_.transmissions) : sender_.retransmit_next++;
  transmit(seq, board.dsn(seq), true, now);
}

void Sender::send_new(Time now) {
  Scoreboard& board = sender_.board;
  const Seq dsn = DataScheduler(stack_, connection_).take_for(number_);
  const Seq seq = board.send_new(dsn, sender_.transmissions);
  sender_.retransmit_next = board.next();
  transmit(seq, dsn, false, now);
}

bool Sender::has_window(bool retransmission) const {
  const bool reduces = reduces_proportionally(options()) && !connection_.control->by_agent;
  if (sender_.recovery == Recovery::fast && reduces) return sender_.reduction.quota > 0;
  const Scoreboard& board = sender_.board;
  const std::uint32_t flight = options().sack    ? board.pipe()
                               : retransmission ? sender_.retransmit_next - board.una()
                                                : board.outstanding();
  return flight + 1 <= path_.window + sender_.inflation;
}

void Sender::transmit(Seq seq, Seq dsn, bool retransmission, Time now) {
  const PacketId id = stack_.network.pool().acquire_or_throw();
  Segment& segment = stack_.segments[id];
  segment.sent = stack_.clock.reading(now);
  segment.seq = seq;
  segment.dsn = dsn;
  segment.order = sender_.transmissions;
  segment.carries = Carries::data;
  const std::uint16_t mptcp_bytes = connection_.multipath() ? options().mptcp_bytes : std::uint16_t{0};
  const auto size_bytes = static_cast<std::uint16_t>(options().header_bytes + mptcp_bytes + connection_.payload_of(dsn));
  // Retransmissions must not be marked (RFC 3168, section 6.1.5), unless the sender counts every mark.
  const bool markable = options().ecn && (!retransmission || connection_.control->by_share_of_marks);
  const Ecn ecn = markable ? Ecn::ect0 : Ecn::not_ect;
  if (sender_.retransmission.at == kNever) restart_timer(now);
  if (!sender_.busy) SocketInfo(*this).update(now);
  stack_.send(id, {number_, size_bytes, ecn, connection_.dscp, rank()}, subflow_.forward, subflow_.source, subflow_.destination,
              now);
}

void Sender::send_probe(Time now) {
  const PacketId id = stack_.network.pool().acquire_or_throw();
  Segment& segment = stack_.segments[id];
  segment.sent = stack_.clock.reading(now);
  segment.order = sender_.transmissions;
  segment.carries = Carries::probe;
  const auto size_bytes = static_cast<std::uint16_t>(options().header_bytes + 1);
  stack_.send(id, {number_, size_bytes, Ecn::not_ect, connection_.dscp, rank()}, subflow_.forward, subflow_.source,
              subflow_.destination, now);
}

std::uint32_t Sender::rank() const {
  if (!stack_.network.pool().ranks_packets()) return Precedence::kFirst;
  return connection_.rank(options().rank == Rank::sent);
}

void Sender::acknowledged(const Acknowledgement& ack, Time now) {
  if (!connection_.open) return;
  connection_.unsettle(number_);
  const bool moved = advance_connection(ack);
  if (connection_.una == connection_.segments) return Lifecycle(stack_, subflow_.connection).close(now);
  if (moved) join_if_enough_acknowledged(now);
  if (!sender_.established) {  // it was closed while this was under way
    if (moved && connection_.blocked) DataScheduler(stack_, connection_).distribute(now);
    return;
  }
  sample_rtt(stack_.clock.reading(now) - ack.sent);
  if (before(sender_.delivered_order, ack.order)) sender_.delivered_order = ack.order;
  sender_.probing = false;
  const bool forward = before(sender_.board.una(), ack.seq);
  const std::uint32_t fresh = forward ? sender_.board.acknowledge(ack.seq) : 0;
  LossRecovery recovery(*this);
  if (forward) {
    sender_.backoff = 0;
    restart_timer(now);
    recovery.undo_if_spurious(ack);
  }
  recovery.acknowledged(ack, fresh, now);
  if (connection_.control->by_agent) Datapath(*this).acknowledged(ack, now);
  DataScheduler scheduler(stack_, connection_);
  // The subflow just acknowledged is the only one with new room, unless all waited for the connection.
  if (connection_.multipath() && (scheduler.binds_early() || (moved && connection_.blocked))) scheduler.distribute(now);
  send_all(now);
  if (sender_.board.outstanding() == 0 || options().receive_buffer_pkts != 0) SocketInfo(*this).update(now);
}

// Returns whether data was acknowledged or the receiver's window grew.
bool Sender::advance_connection(const Segment& ack) {
  const bool moved = before(connection_.una, ack.dsn) || ack.window_end > connection_.window_end;
  if (before(connection_.una, ack.dsn)) connection_.una = ack.dsn;
  if (options().receive_buffer_pkts != 0) connection_.window_end = std::max(connection_.window_end, ack.window_end);
  return moved;
}

void Sender::join_if_enough_acknowledged(Time now) {
  if (!connection_.alone || options().join_after_bytes == 0) return;
  if (std::uint64_t{connection_.una} * connection_.payload_bytes < options().join_after_bytes) return;
  Lifecycle(stack_, subflow_.connection).join(now);
}

// RFC 6298, with a sample for every acknowledgement (RFC 7323). Linux adds the minimum to the smoothed round-trip
// time, where the RFC takes the larger of the two (tcp_rtt_estimator, net/ipv4/tcp_input.c).
void Sender::sample_rtt(Time rtt) {
  sender_.rtt.sample(std::max<Time>(rtt, 1));
  path_.rtt_s = static_cast<double>(sender_.rtt.srtt) * 1e-12;
  if (options().fixed_rto) {
    sender_.rto = options().min_rto;
    return;
  }
  const Time spread = 4 * sender_.rtt.variance;
  const Time rto = options().linux_recovery ? sender_.rtt.srtt + std::max(spread, options().min_rto)
                                            : std::max(sender_.rtt.srtt + spread, options().min_rto);
  sender_.rto = std::min(rto, options().max_rto);
}

// A stack that scans its timers periodically sees one at the first scan after it has expired.
Time Sender::seen_by_scan(Time expires) const {
  const Time scan = options().timer_scan;
  return scan == 0 ? expires : (expires + scan - 1) / scan * scan;
}

void Sender::restart_timer(Time now) {
  if (sender_.established && sender_.board.outstanding() == 0) {
    sender_.retransmission.at = kNever;
    return;
  }
  const std::uint8_t doublings = options().fixed_rto ? std::uint8_t{0} : std::min(sender_.backoff, kMaxBackoff);
  const Time rto = std::min(sender_.rto << doublings, options().max_rto);
  stack_.timers.set(sender_.retransmission, Alarm::retransmission, number_, seen_by_scan(stack_.clock.after(now, rto)));
}

}  // namespace fabric
