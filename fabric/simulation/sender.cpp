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

bool Simulation::may_send_new(const Connection& connection) const {
  if (!connection.open) return false;
  if (!connection.to_reinject.empty()) return true;
  if (connection.next == connection.segments || connection.next == connection.window_end) return false;
  return options_.send_buffer_pkts == 0 || connection.next - connection.una < options_.send_buffer_pkts;
}

// Sends a segment if there is one, the window has room and so has the host's queue. False where not.
bool Simulation::send_one(std::uint32_t number, Time now) {
  Subflow& subflow = subflows_[number];
  Sender& sender = subflow.sender;
  Connection& connection = connections_[subflow.connection];
  Scoreboard& board = sender.board;
  const bool again = options_.sack ? board.something_lost() : before(sender.resend_next, board.next());
  const std::uint32_t flight = options_.sack ? board.pipe() : again ? sender.resend_next - board.una() : board.outstanding();
  sender.limited_by_window = flight + 1 > paths_[number].window;
  if (sender.limited_by_window || (!again && !may_send_new(connection))) return false;
  const PortId nic = subflow.forward.ports[0];
  if (subflow.owns_first_port && is_full(nic, now)) {
    wait_for_nic(number, nic);
    return false;
  }
  const std::uint32_t order = ++sender.transmissions;
  if (again) {
    ++sender.retransmits;
    const Seq seq = options_.sack ? board.resend(order) : sender.resend_next++;
    transmit(number, seq, board.dsn(seq), now);
    return true;
  }
  Seq dsn = connection.next;
  if (connection.to_reinject.empty()) {
    ++connection.next;
  } else {
    dsn = connection.to_reinject.back();
    connection.to_reinject.pop_back();
  }
  const Seq seq = board.send_new(dsn, order);
  sender.resend_next = board.next();
  transmit(number, seq, dsn, now);
  return true;
}

void Simulation::transmit(std::uint32_t number, Seq seq, Seq dsn, Time now) {
  Subflow& subflow = subflows_[number];
  const PacketId id = descriptor();
  Segment& segment = segments_[id];
  segment.sent = now;
  segment.seq = seq;
  segment.dsn = dsn;
  segment.order = subflow.sender.transmissions;
  segment.is_ack = false;
  Packet& packet = network_.pool()[id];
  packet.kind = Kind::packet;
  packet.owner = number;
  const Connection& connection = connections_[subflow.connection];
  const std::uint16_t mptcp_bytes = connection.multipath() ? options_.mptcp_bytes : std::uint16_t{0};
  packet.size_bytes = static_cast<std::uint16_t>(options_.header_bytes + mptcp_bytes + connection.payload_of(dsn));
  packet.ecn = options_.ecn ? Ecn::ect0 : Ecn::not_ect;
  packet.take(network_.router().per_packet() ? network_.router().path(subflow.source, subflow.destination, 0) : subflow.forward);
  if (subflow.sender.retransmission.at == kNever) restart_timer(number, now);
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
  if (before(connection.una, ack.dsn)) connection.una = ack.dsn;
  connection.window_end = options_.receive_buffer_pkts == 0 ? kNone : std::max(connection.window_end, ack.window_end);
  if (connection.una == connection.segments) {
    return close(subflow.connection, now);
  }
  const Time rtt = std::max<Time>(now - ack.sent, 1);
  sender.rtt.sample(rtt);
  sender.rto = std::clamp(sender.rtt.srtt + 4 * sender.rtt.variance, options_.min_rto, options_.max_rto);
  paths_[number].rtt_s = static_cast<double>(sender.rtt.srtt) * 1e-12;
  if (before(sender.delivered_order, ack.order)) sender.delivered_order = ack.order;
  const bool forward = before(sender.board.una(), ack.seq);
  std::uint32_t fresh = forward ? sender.board.acknowledge(ack.seq) : 0;
  if (forward) {
    sender.backoff = 0;
    restart_timer(number, now);
  }
  if (options_.sack) {
    by_sack(number, ack, fresh);
  } else {
    without_sack(number, ack, fresh, now);
  }
  send_all(number, now);
}

void Simulation::by_sack(std::uint32_t number, const Segment& ack, std::uint32_t fresh) {
  Sender& sender = subflows_[number].sender;
  // A duplicate acknowledgement says that something may be lost: the window waits until it is known (RFC 5681,
  // section 3.2), unless packets overtake each other all the time.
  const bool orderly = fresh != 0 || sender.dup_threshold > options_.dup_threshold;
  for (std::uint8_t i = 0; i < ack.block_count; ++i) {
    fresh += sender.board.sack(ack.blocks[i], [](std::uint32_t) {});
  }
  heed_marks(number, ack, fresh);
  sender.board.judge(sender.dup_threshold, sender.delivered_order);
  if (sender.recovery != Recovery::open && !before(sender.board.una(), sender.recover)) sender.recovery = Recovery::open;
  if (sender.recovery == Recovery::open && sender.board.something_lost()) {
    reduce(number);
    sender.recovery = Recovery::fast;
  } else if (sender.recovery != Recovery::fast && orderly) {
    open_window(number, fresh);
  }
}

// NewReno (RFC 6582), with the window inflated by what has left the network.
void Simulation::without_sack(std::uint32_t number, const Segment& ack, std::uint32_t fresh, Time now) {
  Sender& sender = subflows_[number].sender;
  PathState& path = paths_[number];
  heed_marks(number, ack, fresh);
  if (before(sender.resend_next, sender.board.una())) sender.resend_next = sender.board.una();
  if (fresh == 0) {
    if (sender.board.outstanding() == 0 || sender.recovery == Recovery::timeout) return;
    ++sender.dup_acks;
    if (sender.recovery == Recovery::fast) {
      path.window += 1;
    } else if (sender.dup_acks == sender.dup_threshold && !before(sender.board.una(), sender.recover)) {
      reduce(number);
      path.window = sender.ssthresh + sender.dup_threshold;
      sender.recovery = Recovery::fast;
      ++sender.transmissions;
      ++sender.retransmits;
      transmit(number, sender.board.una(), sender.board.dsn(sender.board.una()), now);
    }
    return;
  }
  sender.dup_acks = 0;
  const bool all = !before(sender.board.una(), sender.recover);
  if (sender.recovery == Recovery::fast && !all) {
    path.window = std::max(path.window - fresh + 1, 1.0);
    ++sender.transmissions;
    ++sender.retransmits;
    transmit(number, sender.board.una(), sender.board.dsn(sender.board.una()), now);
    return;
  }
  if (sender.recovery == Recovery::fast) {
    path.window = std::min(sender.ssthresh, sender.board.outstanding() + 1.0);
    sender.recovery = Recovery::open;
    return;
  }
  // An acknowledgement that closes a gap covers what arrived long ago: it opens the window by one packet after
  // a timeout, by the two of a delayed acknowledgement else (RFC 5681, section 3.1; RFC 3465, section 2.3).
  const std::uint32_t most = sender.recovery == Recovery::timeout ? 1 : 2;
  if (all) sender.recovery = Recovery::open;
  open_window(number, std::min(fresh, most));
}

void Simulation::open_window(std::uint32_t number, std::uint32_t fresh) {
  Sender& sender = subflows_[number].sender;
  PathState& path = paths_[number];
  path.since_loss += fresh;
  if (fresh == 0 || !sender.limited_by_window) return;
  const bool slow_start = sender.ssthresh == 0 || path.window < sender.ssthresh;
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
  sender.recover = sender.board.next();
}

void Simulation::timed_out(std::uint32_t number, Time now) {
  Subflow& subflow = subflows_[number];
  Sender& sender = subflow.sender;
  Connection& connection = connections_[subflow.connection];
  if (!connection.open || sender.board.outstanding() == 0) return;
  ++sender.timeouts;
  if (sender.recovery != Recovery::timeout) reduce(number);
  sender.recovery = Recovery::timeout;
  sender.recover = sender.board.next();
  sender.dup_acks = 0;
  paths_[number].window = 1;
  sender.backoff = static_cast<std::uint8_t>(std::min(sender.backoff + 1, 16));
  if (options_.sack) {
    sender.board.lose_all();
  } else {
    sender.resend_next = sender.board.una();
  }
  if (options_.reinject && connection.count > 1) {
    sender.board.each_unacknowledged([&](Seq dsn) {
      if (!before(dsn, connection.una)) connection.to_reinject.push_back(dsn);
    });
  }
  restart_timer(number, now);
  send_all(number, now);
  for (std::uint32_t i = 0; i < connection.count && !connection.to_reinject.empty(); ++i) {
    if (connection.first + i != number) send_all(connection.first + i, now);
  }
}

void Simulation::restart_timer(std::uint32_t number, Time now) {
  Sender& sender = subflows_[number].sender;
  if (sender.board.outstanding() == 0) {
    sender.retransmission.at = kNever;
    return;
  }
  const Time rto = std::min(sender.rto << std::min<int>(sender.backoff, 16), options_.max_rto);
  set(sender.retransmission, Alarm::retransmission, number, now + rto);
}

}  // namespace fabric
