#include <algorithm>
#include <cmath>

#include "simulation/congestion/dctcp.hpp"
#include "simulation/simulation.hpp"

namespace fabric {

namespace {

bool before(Seq a, Seq b) { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace

void Simulation::send_all(std::uint32_t number, Time now) {
  while (send_one(number, now)) {
  }
}

bool Simulation::is_early(const Connection& connection) const {
  return connection.count > 1 && options_.scheduler->burst_bytes != 0;
}

bool Simulation::may_send_new(std::uint32_t number, Connection& connection) {
  if (connection.has_reinjection(number)) return true;
  SeqQueue& bound = subflows_[number].sender.bound;
  while (!bound.empty() && before(bound.front(), connection.una)) bound.pop();  // another has carried it
  if (!bound.empty()) return true;
  return !is_early(connection) && connection.has_new(options_.send_buffer_pkts);
}

// The part of the data that goes next by this subflow. There must be one.
Seq Simulation::take_new(std::uint32_t number, Connection& connection) {
  if (connection.has_reinjection(number)) return connection.to_reinject[connection.reinjected++].dsn;
  SeqQueue& bound = subflows_[number].sender.bound;
  if (bound.empty()) return connection.next++;
  const Seq dsn = bound.front();
  bound.pop();
  return dsn;
}

// Sends a segment if there is one, the window has room and so has the host's queue. False where not.
bool Simulation::send_one(std::uint32_t number, Time now) {
  Subflow& subflow = subflows_[number];
  Sender& sender = subflow.sender;
  Connection& connection = connections_[subflow.connection];
  Scoreboard& board = sender.board;
  if (!connection.open || !sender.established) return false;
  const bool again = options_.sack ? board.something_lost() : before(sender.resend_next, board.next());
  sender.limited_by_window = !has_window(number, again);
  if (sender.limited_by_window) return false;
  if (!again && !may_send_new(number, connection)) {
    connection.blocked = true;
    if (board.outstanding() == 0 || options_.receive_buffer_pkts != 0) keep_time(number, now);
    return false;
  }
  const PortId nic = subflow.forward.ports[0];
  if (subflow.owns_first_port && is_full(nic, now)) {
    wait_for_nic(number, nic);
    return false;
  }
  const std::uint32_t order = ++sender.transmissions;
  --sender.reduction.quota;
  ++sender.reduction.sent;
  if (again) {
    ++sender.retransmits;
    const Seq seq = options_.sack ? board.resend(order) : sender.resend_next++;
    transmit(number, seq, board.dsn(seq), true, now);
    return true;
  }
  const Seq dsn = take_new(number, connection);
  const Seq seq = board.send_new(dsn, order);
  sender.resend_next = board.next();
  transmit(number, seq, dsn, false, now);
  return true;
}

bool Simulation::has_window(std::uint32_t number, bool again) const {
  const Sender& sender = subflows_[number].sender;
  if (sender.recovery == Recovery::fast && in_proportion()) return sender.reduction.quota > 0;
  const Scoreboard& board = sender.board;
  const std::uint32_t flight = options_.sack ? board.pipe() : again ? sender.resend_next - board.una() : board.outstanding();
  return flight + 1 <= paths_[number].window + sender.inflation;
}

void Simulation::transmit(std::uint32_t number, Seq seq, Seq dsn, bool again, Time now) {
  Subflow& subflow = subflows_[number];
  const PacketId id = descriptor();
  Segment& segment = segments_[id];
  segment.sent = now + ahead_;
  segment.seq = seq;
  segment.dsn = dsn;
  segment.order = subflow.sender.transmissions;
  segment.carries = Carries::data;
  Packet& packet = network_.pool()[id];
  packet.kind = Kind::packet;
  packet.owner = number;
  const Connection& connection = connections_[subflow.connection];
  const std::uint16_t mptcp_bytes = connection.multipath() ? options_.mptcp_bytes : std::uint16_t{0};
  packet.size_bytes = static_cast<std::uint16_t>(options_.header_bytes + mptcp_bytes + connection.payload_of(dsn));
  // What is sent again must not be marked (RFC 3168, section 6.1.5), unless every mark counts.
  const bool markable = options_.ecn && (!again || connection.control->by_share_of_marks);
  packet.ecn = markable ? Ecn::ect0 : Ecn::not_ect;
  packet.dscp = connection.dscp & kDscpBits;
  lead(packet, subflow.forward, subflow.source, subflow.destination);
  if (subflow.sender.retransmission.at == kNever) restart_timer(number, now);
  if (!subflow.sender.busy) keep_time(number, now);
  network_.inject(id, now, *this);
}

bool Simulation::is_full(PortId nic, Time now) {
  Port& port = network_.port(nic);
  port.advance(now);
  return port.queued_pkts() >= options_.nic_queue_pkts;
}

void Simulation::wait_for_nic(std::uint32_t number, PortId port) {
  Sender& sender = subflows_[number].sender;
  if (sender.waiting_for_nic) return;
  sender.waiting_for_nic = true;
  sender.next_waiting = kNone;
  Waiting& waiting = waiting_[port];
  if (waiting.first == kNone) {
    waiting.first = number;
    ring(Alarm::nic, port, network_.port(port).first_departure());
  } else {
    subflows_[waiting.last].sender.next_waiting = number;
  }
  waiting.last = number;
}

// A place is free in a host's queue: those that wait take turns.
void Simulation::nic_ready(PortId port, Time now) {
  Waiting& waiting = waiting_[port];
  while (waiting.first != kNone) {
    if (is_full(port, now)) return ring(Alarm::nic, port, network_.port(port).first_departure());
    const std::uint32_t number = waiting.first;
    Sender& sender = subflows_[number].sender;
    waiting.first = sender.next_waiting;
    sender.waiting_for_nic = false;
    if (!send_one(number, now)) continue;
    // Whoever comes back to the end of the line must find it kept: the alarm is set below.
    sender.waiting_for_nic = true;
    sender.next_waiting = kNone;
    if (waiting.first == kNone) {
      waiting.first = number;
    } else {
      subflows_[waiting.last].sender.next_waiting = number;
    }
    waiting.last = number;
  }
}

void Simulation::acknowledged(std::uint32_t number, const Segment& ack, Time now) {
  Subflow& subflow = subflows_[number];
  Sender& sender = subflow.sender;
  Connection& connection = connections_[subflow.connection];
  if (!connection.open) return;
  const bool moved = before(connection.una, ack.dsn) || ack.window_end > connection.window_end;
  if (before(connection.una, ack.dsn)) connection.una = ack.dsn;
  if (options_.receive_buffer_pkts != 0) connection.window_end = std::max(connection.window_end, ack.window_end);
  if (connection.una == connection.segments) return close(subflow.connection, now);
  if (connection.alone && options_.join_after_bytes != 0 && moved &&
      std::uint64_t{connection.una} * connection.payload_bytes >= options_.join_after_bytes) {
    join(subflow.connection, now);
  }
  sample_rtt(number, now + ahead_ - ack.sent);
  if (before(sender.delivered_order, ack.order)) sender.delivered_order = ack.order;
  const bool forward = before(sender.board.una(), ack.seq);
  const std::uint32_t fresh = forward ? sender.board.acknowledge(ack.seq) : 0;
  if (forward) {
    sender.backoff = 0;
    restart_timer(number, now);
    if (proves_haste(sender, ack)) restore(number);
  }
  if (options_.sack) {
    by_sack(number, ack, fresh, now);
  } else {
    without_sack(number, ack, fresh, now);
  }
  // Who has just been acknowledged is the only one with room, unless all waited for the connection.
  if (connection.count > 1 && (is_early(connection) || (moved && connection.blocked))) hand_out(subflow.connection, now);
  send_all(number, now);
  if (sender.board.outstanding() == 0 || options_.receive_buffer_pkts != 0) keep_time(number, now);
}

// RFC 6298, with a sample an acknowledgement (RFC 7323). Linux adds the least to the smoothed round-trip time
// where the RFC has the larger of the two (tcp_rtt_estimator, net/ipv4/tcp_input.c).
void Simulation::sample_rtt(std::uint32_t number, Time rtt) {
  Sender& sender = subflows_[number].sender;
  sender.rtt.sample(std::max<Time>(rtt, 1));
  const Time spread = 4 * sender.rtt.variance;
  const Time rto = options_.linux_recovery ? sender.rtt.srtt + std::max(spread, options_.min_rto)
                                           : std::max(sender.rtt.srtt + spread, options_.min_rto);
  sender.rto = std::min(rto, options_.max_rto);
  paths_[number].rtt_s = static_cast<double>(sender.rtt.srtt) * 1e-12;
}

void Simulation::open_window(std::uint32_t number, std::uint32_t fresh) {
  Sender& sender = subflows_[number].sender;
  PathState& path = paths_[number];
  path.since_loss += fresh;
  if (fresh == 0) return;
  const bool slow_start = sender.ssthresh == 0 || path.window < sender.ssthresh;
  // Only a window that was used says something about the path; in slow start half of it will do (RFC 7661).
  const bool used = sender.limited_by_window || (slow_start && path.window < 2 * (sender.board.outstanding() + fresh));
  if (!used) return;
  if (slow_start) {
    path.window += fresh;
    if (sender.ssthresh != 0) path.window = std::min(path.window, std::max(sender.ssthresh, path.window - fresh));
    return;
  }
  const Connection& connection = connections_[subflows_[number].connection];
  path.window += fresh * connection.control->increase(siblings(connection), subflows_[number].number);
  path.window = std::max(path.window, 1.0);
}

void Simulation::heed_marks(std::uint32_t number, const Segment& ack, std::uint32_t fresh) {
  if (!options_.ecn) return;
  Sender& sender = subflows_[number].sender;
  const CongestionControl& control = *connections_[subflows_[number].connection].control;
  sender.acked += fresh;
  if (ack.marked) sender.acked_marked += fresh;
  if (!before(sender.board.una(), sender.alpha_end) && sender.acked != 0) {
    sender.alpha = dctcp_alpha(sender.alpha, static_cast<double>(sender.acked_marked) / sender.acked);
    sender.acked = sender.acked_marked = 0;
    sender.alpha_end = sender.board.next();
  }
  if (!ack.marked || sender.recovery != Recovery::open || before(sender.board.una(), sender.reduced_until)) return;
  sender.reduced_until = sender.board.next();
  if (control.by_share_of_marks) {
    paths_[number].window = dctcp_after_marks(paths_[number].window, sender.alpha);
    sender.ssthresh = paths_[number].window;
  } else {
    reduce(number);
  }
}

void Simulation::reduce(std::uint32_t number) {
  Sender& sender = subflows_[number].sender;
  PathState& path = paths_[number];
  const Connection& connection = connections_[subflows_[number].connection];
  sender.ssthresh = connection.control->after_loss(siblings(connection), subflows_[number].number);
  path.window = sender.ssthresh;
  path.between_loss = path.since_loss;
  path.since_loss = 0;
}

}  // namespace fabric
