#include "simulation/tcp.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "simulation/congestion/dctcp.hpp"

namespace fabric {

namespace {

constexpr std::uint8_t kMaxBackoff = 16;
constexpr std::uint32_t kMaxReordering = 300;  // net.ipv4.tcp_max_reordering
// Linux lets a socket's buffer grow to twice its window, counted with the overhead of the packets it allocates for
// (tcp_sndbuf_expand, net/ipv4/tcp_input.c). With packets of the usual size that is three windows.
constexpr double kWindowsHeld = 3;
// net.ipv4.tcp_pacing_ss_ratio and tcp_pacing_ca_ratio.
constexpr double kPacedInSlowStart = 2.0;
constexpr double kPaced = 1.2;

// The timeout before a round trip was measured. Unless it is given, connections that are open when their data comes
// have the timeout that a handshake on the idle path would give (RFC 6298, section 2).
Time first_rto(const TransportOptions& options, const Network& network, const Subflow& subflow) {
  if (options.first_rto_ps > 0) return options.first_rto_ps;
  if (options.fixed_rto) return options.min_rto_ps;
  if (options.handshake) return options.initial_rto_ps;
  Time round_trip = 0;
  for (const Path* path : {&subflow.forward, &subflow.back}) {
    for (const PortId id : path->span()) {
      const Port& port = network.ports()[id];
      round_trip += port.transmission_time(options.ack_bytes) + port.delay();
    }
  }
  return std::max(options.min_rto_ps, std::min(3 * round_trip, options.initial_rto_ps));
}

// Keeps a clock of a socket, which runs while `on`.
void turn(bool& on, Time& total, Time& since, bool wanted, Time now) {
  if (on == wanted) return;
  if (on) total += now - since;
  since = now;
  on = wanted;
}

}  // namespace

// One subflow: its sender, its receiver, and what both know of their connection. Cheap to make: all state is in the
// tables.
class Tcp::Endpoint {
 public:
  Endpoint(Tcp& tcp, std::uint32_t number)
      : tcp_(tcp), stack_(tcp.stack_), subflow_(tcp.subflows_[number]), connection_(tcp.connections_[subflow_.connection]),
        path_(tcp.paths_[number]), number_(number) {}

  // ---- Opening: a SYN and its answer. The acknowledgement of that answer is part of the first data.

  void connect(Time now) {
    const PacketId id = stack_.network.pool().acquire_or_throw();
    Segment& segment = stack_.segments[id];
    segment.sent = stack_.clock.reading(now);
    segment.carries = Carries::syn;
    restart_timer(now);
    stack_.send(id, handshake_header(), subflow_.forward, subflow_.source, subflow_.destination, now);
  }

  // A SYN has arrived. The packet carries the answer.
  void answer_syn(PacketId id, Time now) {
    stack_.segments[id].carries = Carries::syn_acknowledgement;
    if (options().acks == Acks::at_once) {
      const Time sent = stack_.segments[id].sent;
      stack_.network.pool().release(id);
      return established(sent, now);
    }
    stack_.send(id, handshake_header(), subflow_.back, subflow_.destination, subflow_.source, now);
  }

  // The answer to the SYN sent at this time has arrived.
  void established(Time sent, Time now) {
    const bool connecting = sender_.retransmission.at != kNever;  // not if it was closed meanwhile
    if (sender_.established || !connecting || !connection_.open) return;
    sender_.established = true;
    sender_.backoff = 0;
    sender_.retransmission.at = kNever;
    sample_rtt(stack_.clock.reading(now) - sent);
    tcp_.distribute(connection_, now);
    update_clocks(now);
    if (number_ == connection_.first) tcp_.first_established(connection_, now);
  }

  // A subflow that was closed opens again. Its sequence numbers go on where they ended, so that what is still under way
  // from before counts as old.
  void begin_anew() {
    const Seq next = sender_.board.next();
    connection_.unsettle(number_);
    sender_.ssthresh = options().ssthresh;
    sender_.rtt = {};
    sender_.rto = first_rto(options(), stack_.network, subflow_);
    sender_.recover = sender_.retransmit_next = sender_.alpha_end = sender_.reduced_until = next;
    sender_.delivered_order = sender_.transmissions;
    sender_.dup_acks = 0;
    sender_.dup_threshold = options().duplicates();
    sender_.inflation = 0;
    sender_.backoff = 0;
    sender_.recovery = Recovery::open;
    sender_.limited_by_window = sender_.probing = false;
    sender_.reduction = {};
    sender_.before_loss = {};
    sender_.max_held_pkts = 0;
    sender_.alpha = 1.0;
    sender_.acked = sender_.acked_marked = 0;
    receiver_.arrivals.restart(next);
    receiver_.delayed.at = kNever;
    receiver_.block_count = receiver_.unanswered = 0;
  }

  // ---- Sending.

  // Sends until the window or the host's queue is full, or there is no data left.
  void send_all(Time now) {
    while (send_one(now, false)) {
    }
  }

  // Returns false when no segment could be sent. `has_turn`: the host's queue has chosen this sender.
  [[nodiscard]] bool send_one(Time now, bool has_turn) {
    Scoreboard& board = sender_.board;
    if (!connection_.open || !sender_.established || sender_.probing) return false;
    const bool retransmission = options().sack ? board.something_lost() : before(sender_.retransmit_next, board.next());
    sender_.limited_by_window = !has_window(retransmission);
    if (sender_.limited_by_window) return false;
    const bool watched = connection_.control->by_agent && tcp_.agents_->watch_sending();
    if (watched && !datapath().may_send(now)) return false;
    if (!retransmission && !tcp_.has_data_for(connection_, number_)) {
      connection_.blocked = true;
      if (board.outstanding() == 0 || options().receive_buffer != 0) update_clocks(now);
      return false;
    }
    if (subflow_.owns_first_port) {
      const PortId port = subflow_.forward.ports[0];
      if (tcp_.is_full(port, now) || (!has_turn && tcp_.is_claimed(port))) {
        tcp_.wait_for_room(port, number_);
        return false;
      }
    }
    connection_.unsettle(number_);
    ++sender_.transmissions;
    --sender_.reduction.quota;
    ++sender_.reduction.sent;
    if (retransmission) {
      ++sender_.retransmits;
      const Seq seq = options().sack ? board.retransmit(sender_.transmissions) : sender_.retransmit_next++;
      transmit(seq, board.dsn(seq), true, now);
    } else {
      const Seq dsn = tcp_.take_for(connection_, number_);
      const Seq seq = board.send_new(dsn, sender_.transmissions);
      sender_.retransmit_next = board.next();
      transmit(seq, dsn, false, now);
    }
    if (watched) datapath().sent(connection_.payload_bytes, now);
    return true;
  }

  // ---- Acknowledgements.

  void acknowledged(const Acknowledgement& ack, Time now) {
    if (!connection_.open) return;
    connection_.unsettle(number_);
    const bool moved = advance_connection(ack);
    if (connection_.una == connection_.segments) return tcp_.close(connection_, now);
    if (moved) join_if_enough_acknowledged(now);
    if (!sender_.established) {  // it was closed while this was under way
      if (moved && connection_.blocked) tcp_.distribute(connection_, now);
      return;
    }
    sample_rtt(stack_.clock.reading(now) - ack.sent);
    if (before(sender_.delivered_order, ack.order)) sender_.delivered_order = ack.order;
    sender_.probing = false;
    const bool forward = before(sender_.board.una(), ack.seq);
    const std::uint32_t fresh = forward ? sender_.board.acknowledge(ack.seq) : 0;
    if (forward) {
      sender_.backoff = 0;
      restart_timer(now);
      if (is_spurious(ack)) undo();
    }
    if (options().sack) {
      acknowledged_with_sack(ack, fresh, now);
    } else {
      acknowledged_without_sack(ack, fresh, now);
    }
    if (connection_.control->by_agent) datapath().acknowledged(ack, now);
    // The subflow just acknowledged is the only one with new room, unless all waited for the connection.
    const bool others = tcp_.binds_early(connection_) || (moved && connection_.blocked);
    if (connection_.multipath() && others) tcp_.distribute(connection_, now);
    send_all(now);
    if (sender_.board.outstanding() == 0 || options().receive_buffer != 0) update_clocks(now);
  }

  // ---- Timeouts.

  // The retransmission timer has expired.
  void timed_out(Time now) {
    if (!connection_.open) return;
    connection_.unsettle(number_);
    if (!sender_.established) return retry_syn(now);
    if (sender_.board.outstanding() == 0) return;
    ++sender_.timeouts;
    if (sender_.recovery == Recovery::open) {
      save_window();
      reduce_window();
    }
    sender_.recovery = Recovery::timeout;
    sender_.recover = sender_.board.next();
    sender_.dup_acks = 0;
    sender_.inflation = 0;
    if (connection_.control->by_agent) {
      datapath().timed_out(now);
    } else {
      if (connection_.control->by_time) cubic::timed_out(cubic().state);
      if (connection_.control->increase != nullptr) path_.window = 1;
    }
    sender_.backoff = std::min<std::uint8_t>(static_cast<std::uint8_t>(sender_.backoff + 1), kMaxBackoff);
    if (options().sack) {
      sender_.board.lose_all();
    } else {
      sender_.retransmit_next = sender_.board.una();
    }
    sender_.probing = options().probe_after != 0 && sender_.backoff >= options().probe_after;
    restart_timer(now);
    if (sender_.probing) return send_probe(now);
    send_all(now);
    if (options().reinject && connection_.multipath()) tcp_.reinject(connection_, number_, now);
  }

  // ---- Receiving.

  // A segment has arrived.
  void arrived(PacketId id, Time now) {
    const Segment& segment = stack_.segments[id];
    const Answered answered{segment.sent, segment.order};
    const bool marked = stack_.network.pool()[id].ecn == Ecn::ce;
    // When marks change, the withheld acknowledgement goes first, so that the sender can tell which were marked.
    if (receiver_.unanswered != 0 && marked != receiver_.last_marked) {
      acknowledge(packet_of_its_own(), receiver_.first_unanswered, receiver_.last_marked, now);
    }
    const bool is_next = segment.seq == receiver_.arrivals.next();
    const bool in_order = is_next && receiver_.arrivals.held() == 0;
    const bool fresh = receiver_.arrivals.add(segment.seq);
    if (fresh && connection_.arrivals.add(segment.dsn) && connection_.arrivals.next() == connection_.segments &&
        connection_.completed == kNever) {
      complete(now);
    }
    if (options().sack && receiver_.arrivals.held() != 0 && fresh && !is_next) note_block(segment.seq);
    const bool calm = in_order && marked == receiver_.last_marked && connection_.completed == kNever &&
                      (!options().ack_gaps || connection_.arrivals.held() == 0);
    if (options().delayed_ack_ps != 0 && calm && receiver_.unanswered == 0) {
      receiver_.unanswered = 1;
      receiver_.first_unanswered = answered;
      stack_.network.pool().release(id);
      const Time when = stack_.clock.after(now, options().delayed_ack_ps);
      stack_.timers.set(receiver_.delayed, Alarm::delayed_ack, number_, when);
      return;
    }
    receiver_.last_marked = marked;
    acknowledge(id, receiver_.unanswered != 0 ? receiver_.first_unanswered : answered, marked, now);
  }

  // A probe is acknowledged and carries nothing new.
  void probed(PacketId id, Time now) {
    const Segment& segment = stack_.segments[id];
    acknowledge(id, {segment.sent, segment.order}, receiver_.last_marked, now);
  }

  void delayed_ack_expired(Time now) {
    if (receiver_.unanswered == 0) return;
    acknowledge(packet_of_its_own(), receiver_.first_unanswered, receiver_.last_marked, now);
  }

  // ---- What the socket reports.

  // Must be called wherever a clock may start or stop.
  void update_clocks(Time now) {
    SocketClock& clock = tcp_.clocks_[number_];
    const bool busy = has_work();
    turn(sender_.busy, clock.busy, clock.busy_since, busy, now);
    turn(sender_.rwnd_limited, clock.rwnd_limited, clock.rwnd_limited_since, busy && waits_for_receiver(), now);
  }

  [[nodiscard]] Datapath datapath() { return {stack_, *tcp_.agents_, number_, connection_, sender_, path_}; }

 private:
  [[nodiscard]] const TransportOptions& options() const { return stack_.options; }
  // The paths of all subflows of the connection.
  [[nodiscard]] Paths siblings() const { return {tcp_.paths_.data() + connection_.first, connection_.count}; }
  [[nodiscard]] CubicPath& cubic() { return tcp_.cubics_[number_]; }
  [[nodiscard]] PacketHeader handshake_header() const {
    return {number_, options().ack_bytes, Ecn::not_ect, connection_.dscp};
  }

  // The SYN, or its answer, was lost. That leaves a window of one segment (RFC 5681, section 3.1).
  void retry_syn(Time now) {
    ++sender_.timeouts;
    ++sender_.retransmits;
    ++sender_.backoff;
    path_.window = 1;
    connect(now);
  }

  // Whether proportional rate reduction (RFC 6937) governs fast recovery.
  [[nodiscard]] bool reduces_proportionally() const { return options().linux_recovery() && options().sack; }

  [[nodiscard]] bool has_window(bool retransmission) const {
    const bool reduces = reduces_proportionally() && !connection_.control->by_agent;
    if (sender_.recovery == Recovery::fast && reduces) return sender_.reduction.quota > 0;
    const Scoreboard& board = sender_.board;
    const std::uint32_t flight = options().sack    ? board.pipe()
                                 : retransmission ? sender_.retransmit_next - board.una()
                                                  : board.outstanding();
    return flight + 1 <= path_.window + sender_.inflation;
  }

  void transmit(Seq seq, Seq dsn, bool retransmission, Time now) {
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
    const bool markable = options().ecn && (!retransmission || connection_.control->after_marks != nullptr);
    const Ecn ecn = markable ? Ecn::ect0 : Ecn::not_ect;
    if (sender_.retransmission.at == kNever) restart_timer(now);
    if (!sender_.busy) update_clocks(now);
    stack_.send(id, annotated({number_, size_bytes, ecn, connection_.dscp}), subflow_.forward, subflow_.source,
                subflow_.destination, now);
  }

  // A packet with one byte of data, which the receiver acknowledges.
  void send_probe(Time now) {
    const PacketId id = stack_.network.pool().acquire_or_throw();
    Segment& segment = stack_.segments[id];
    segment.sent = stack_.clock.reading(now);
    segment.order = sender_.transmissions;
    segment.carries = Carries::probe;
    const auto size_bytes = static_cast<std::uint16_t>(options().header_bytes + 1);
    stack_.send(id, annotated({number_, size_bytes, Ecn::not_ect, connection_.dscp}), subflow_.forward, subflow_.source,
                subflow_.destination, now);
  }

  // With what queues and switches read of a sender's packets.
  [[nodiscard]] PacketHeader annotated(PacketHeader header) const {
    if (!stack_.network.pool().annotates()) [[likely]] return header;
    header.rank = connection_.rank(options().rank == Rank::sent);
    header.measured = connection_.control->by_agent && tcp_.agents_->read.has_hops();
    return header;
  }

  // Returns whether data was acknowledged or the receiver's window grew.
  bool advance_connection(const Segment& ack) {
    const bool moved = before(connection_.una, ack.dsn) || ack.window_end > connection_.window_end;
    if (before(connection_.una, ack.dsn)) connection_.una = ack.dsn;
    if (options().receive_buffer != 0) connection_.window_end = std::max(connection_.window_end, ack.window_end);
    return moved;
  }

  void join_if_enough_acknowledged(Time now) {
    if (!connection_.alone || options().join_after_bytes == 0) return;
    if (std::uint64_t{connection_.una} * connection_.payload_bytes < options().join_after_bytes) return;
    tcp_.join(connection_, now);
  }

  // RFC 6298, with a sample for every acknowledgement (RFC 7323). Linux adds the minimum to the smoothed round-trip
  // time, where the RFC takes the larger of the two (tcp_rtt_estimator, net/ipv4/tcp_input.c).
  void sample_rtt(Time rtt) {
    sender_.rtt.sample(std::max<Time>(rtt, 1));
    path_.rtt_s = static_cast<double>(sender_.rtt.srtt) * 1e-12;
    if (options().fixed_rto) {
      sender_.rto = options().min_rto_ps;
      return;
    }
    const Time spread = 4 * sender_.rtt.variance;
    const Time rto = options().linux_recovery() ? sender_.rtt.srtt + std::max(spread, options().min_rto_ps)
                                              : std::max(sender_.rtt.srtt + spread, options().min_rto_ps);
    sender_.rto = std::min(rto, options().max_rto_ps);
  }

  // Restarts the retransmission timer, or stops it when nothing is outstanding.
  void restart_timer(Time now) {
    if (sender_.established && sender_.board.outstanding() == 0) {
      sender_.retransmission.at = kNever;
      return;
    }
    const std::uint8_t doublings = options().fixed_rto ? std::uint8_t{0} : std::min(sender_.backoff, kMaxBackoff);
    const Time expires = stack_.clock.after(now, std::min(sender_.rto << doublings, options().max_rto_ps));
    // A stack that scans its timers periodically sees one at the first scan after it has expired.
    const Time scan = options().timer_scan_ps;
    const Time seen = scan == 0 ? expires : (expires + scan - 1) / scan * scan;
    stack_.timers.set(sender_.retransmission, Alarm::retransmission, number_, seen);
  }

  // ---- Loss recovery.

  void acknowledged_with_sack(const Acknowledgement& ack, std::uint32_t fresh, Time now) {
    // A duplicate acknowledgement means that a segment may be lost: the window does not grow until that is known
    // (RFC 5681, section 3.2), unless packets are reordered all the time.
    const bool orderly = fresh != 0 || sender_.dup_threshold > options().duplicates();
    for (std::uint8_t i = 0; i < ack.block_count; ++i) fresh += sender_.board.sack(ack.blocks[i]);
    react_to_marks(ack, fresh);
    raise_threshold(sender_.board.take_reordering());
    sender_.board.detect_losses(threshold(), sender_.delivered_order);
    if (sender_.recovery != Recovery::open && !before(sender_.board.una(), sender_.recover)) {
      sender_.recovery = Recovery::open;
      sender_.before_loss.known = false;
    }
    if (sender_.recovery == Recovery::open && sender_.board.something_lost()) {
      begin_fast_recovery(now);
    } else if (sender_.recovery != Recovery::fast && orderly) {
      grow_window(fresh, now);
    }
    if (sender_.recovery == Recovery::fast && reduces_proportionally()) update_reduction(fresh);
  }

  // NewReno. The window is inflated by the number of packets that have left the network.
  void acknowledged_without_sack(const Segment& ack, std::uint32_t fresh, Time now) {
    react_to_marks(ack, fresh);
    if (before(sender_.retransmit_next, sender_.board.una())) sender_.retransmit_next = sender_.board.una();
    if (fresh == 0) return duplicate(ack, now);
    sender_.dup_acks = 0;
    const bool all = !before(sender_.board.una(), sender_.recover);
    if (sender_.recovery == Recovery::fast && !all) {  // a partial acknowledgement
      const auto whole = static_cast<std::int32_t>(path_.window);
      sender_.inflation = std::max(sender_.inflation - static_cast<std::int32_t>(fresh) + 1, 1 - whole);
      return retransmit_first(now);
    }
    if (all) sender_.before_loss.known = false;
    if (sender_.recovery == Recovery::fast) {
      path_.window = std::min(sender_.ssthresh, sender_.board.outstanding() + 1.0);
      sender_.inflation = 0;
      sender_.recovery = Recovery::open;
      return;
    }
    // An acknowledgement that closes a gap covers segments that arrived long ago. It opens the window by one packet
    // after a timeout, otherwise by the two of a delayed acknowledgement (RFC 5681, section 3.1; RFC 3465, section 2.3).
    const std::uint32_t limit = sender_.recovery == Recovery::timeout ? 1 : 2;
    if (all) sender_.recovery = Recovery::open;
    grow_window(std::min(fresh, limit), now);
  }

  void duplicate(const Segment& ack, Time now) {
    const Seq una = sender_.board.una();
    if (ack.seq != una || sender_.board.outstanding() == 0 || sender_.recovery == Recovery::timeout) return;
    ++sender_.dup_acks;
    if (sender_.recovery == Recovery::fast) {
      ++sender_.inflation;
    } else if (sender_.dup_acks >= threshold() && !before(una, sender_.recover)) {
      begin_fast_recovery(now);
      sender_.inflation = static_cast<std::int32_t>(sender_.dup_acks);
      retransmit_first(now);
    }
  }

  void retransmit_first(Time now) {
    ++sender_.transmissions;
    ++sender_.retransmits;
    transmit(sender_.board.una(), sender_.board.dsn(sender_.board.una()), true, now);
  }

  // How many segments must have overtaken another before that counts as lost. A sender waits for a window's worth at
  // most (RFC 4653), and for no more than can still arrive.
  [[nodiscard]] std::uint32_t threshold() const {
    if (sender_.dup_threshold > options().duplicates()) {
      const auto window = static_cast<std::uint32_t>(path_.window);
      return std::max(options().duplicates(), std::min(sender_.dup_threshold, window));
    }
    if (!options().linux_recovery()) return sender_.dup_threshold;
    const std::uint32_t outstanding = sender_.board.outstanding();
    if (outstanding > sender_.dup_threshold || outstanding < 2) return sender_.dup_threshold;
    return tcp_.has_data_for(connection_, number_) ? sender_.dup_threshold : outstanding - 1;
  }

  void raise_threshold(std::uint32_t reordering) {
    if (!options().adapts_to_reordering()) return;
    sender_.dup_threshold = std::max(sender_.dup_threshold, std::min(reordering, kMaxReordering));
  }

  // Marks may have reduced this very window already (RFC 3168, section 6.1.2).
  void begin_fast_recovery(Time now) {
    save_window();
    if (!options().ecn || !before(sender_.board.una(), sender_.reduced_until)) reduce_window();
    path_.window = std::min(path_.window, sender_.ssthresh);
    sender_.recovery = Recovery::fast;
    sender_.recover = sender_.board.next();
    sender_.reduction = {.flight = std::max(sender_.board.outstanding(), 1U), .delivered = 0, .sent = 0, .quota = 0};
    restart_timer(now);
  }

  // RFC 6937, section 3: while a window is acknowledged, the packets in the network fall to the threshold in
  // proportion; below it they rise to it as in slow start.
  void update_reduction(std::uint32_t fresh) {
    Reduction& reduction = sender_.reduction;
    const double pipe = sender_.board.pipe();
    reduction.delivered += fresh;
    if (pipe > sender_.ssthresh) {
      const double due = std::ceil(reduction.delivered * sender_.ssthresh / reduction.flight);
      reduction.quota = static_cast<std::int64_t>(due) - reduction.sent;
    } else {
      const std::int64_t behind = std::int64_t{reduction.delivered} - reduction.sent;
      const std::int64_t limit = std::max(behind, std::int64_t{fresh}) + 1;
      reduction.quota = std::min(static_cast<std::int64_t>(sender_.ssthresh - pipe), limit);
    }
    if (reduction.sent == 0) reduction.quota = std::max<std::int64_t>(reduction.quota, 1);
  }

  // The segment thought lost is acknowledged before any retransmission can have been.
  [[nodiscard]] bool is_spurious(const Segment& ack) const {
    const bool may = sender_.recovery == Recovery::fast ||
                     (options().linux_recovery() && sender_.recovery == Recovery::timeout);
    return may && options().adapts_to_reordering() && sender_.before_loss.known &&
           !before(sender_.before_loss.transmissions, ack.order);
  }

  // Nothing was lost: the window is what it was.
  void undo() {
    if (connection_.control->by_time) cubic().state = cubic().before_loss;
    path_.window = std::max(path_.window, sender_.before_loss.window);
    path_.since_loss += path_.between_loss;
    sender_.ssthresh = sender_.before_loss.ssthresh;
    sender_.before_loss.known = false;
    sender_.recovery = Recovery::open;
    sender_.recover = sender_.board.una();
    sender_.inflation = 0;
    raise_threshold(sender_.dup_acks + 1);
    if (options().sack) {
      sender_.board.lose_none();
    } else {
      sender_.retransmit_next = sender_.board.next();
    }
  }

  // ---- The congestion window. The laws are those of congestion/.

  // `fresh` packets are newly known to have arrived.
  void grow_window(std::uint32_t fresh, Time now) {
    path_.since_loss += fresh;
    if (fresh == 0 || connection_.control->increase == nullptr) return;
    const bool slow_start = sender_.in_slow_start(path_.window);
    // Only a window that was in use has tested the path; in slow start half of it is enough (RFC 7661).
    const bool used = sender_.limited_by_window || (slow_start && path_.window < 2 * (sender_.board.outstanding() + fresh));
    if (!used) return;
    if (slow_start) {
      path_.window += fresh;
      if (sender_.ssthresh != 0) path_.window = std::min(path_.window, std::max(sender_.ssthresh, path_.window - fresh));
    } else if (connection_.control->by_time) {
      const double now_s = static_cast<double>(now) / static_cast<double>(kSecond);
      path_.window = cubic::grown(cubic().state, path_.window, fresh, now_s, path_.rtt_s);
    } else {
      path_.window += fresh * connection_.control->increase(siblings(), subflow_.number);
      path_.window = std::max(path_.window, 1.0);
    }
    if (options().max_window != 0) path_.window = std::min(path_.window, static_cast<double>(options().max_window));
  }

  void react_to_marks(const Segment& ack, std::uint32_t fresh) {
    if (!options().ecn) return;
    update_alpha(ack, fresh);
    const bool reacts = sender_.recovery == Recovery::open && !before(sender_.board.una(), sender_.reduced_until);
    if (!ack.marked || !reacts) return;
    sender_.reduced_until = sender_.board.next();
    if (connection_.control->after_marks == nullptr) return reduce_window();
    path_.window = connection_.control->after_marks(path_.window, sender_.alpha);
    sender_.ssthresh = path_.window;
  }

  // RFC 8257, section 3.3, once per window.
  void update_alpha(const Segment& ack, std::uint32_t fresh) {
    sender_.acked += fresh;
    if (ack.marked) sender_.acked_marked += fresh;
    if (before(sender_.board.una(), sender_.alpha_end) || sender_.acked == 0) return;
    sender_.alpha = dctcp_alpha(sender_.alpha, static_cast<double>(sender_.acked_marked) / sender_.acked);
    sender_.acked = sender_.acked_marked = 0;
    sender_.alpha_end = sender_.board.next();
  }

  void reduce_window() {
    if (connection_.control->by_time) cubic::reduced(cubic().state, path_.window);
    sender_.ssthresh = connection_.control->after_loss(siblings(), subflow_.number);
    path_.window = sender_.ssthresh;
    path_.between_loss = path_.since_loss;
    path_.since_loss = 0;
  }

  // Before a reduction, for `undo`.
  void save_window() {
    if (connection_.control->by_time) cubic().before_loss = cubic().state;
    sender_.before_loss = {true, path_.window, sender_.ssthresh, sender_.transmissions};
  }

  // ---- The receiver.

  // All data has arrived. Only what readings need is kept.
  void complete(Time now) {
    connection_.completed = now;
    connection_.arrivals.release();
    for (std::uint32_t i = connection_.first; i < connection_.first + connection_.count; ++i) {
      tcp_.subflows_[i].receiver.arrivals.release();
    }
  }

  // For an acknowledgement that was withheld: the packet that it answers is gone.
  [[nodiscard]] PacketId packet_of_its_own() {
    PacketPool& pool = stack_.network.pool();
    const PacketId id = pool.acquire_or_throw();
    if (pool.measures_packets()) pool.telemetry(id).hops = 0;
    return id;
  }

  // Sends the acknowledgement of this segment in the given packet.
  void acknowledge(PacketId id, Answered of, bool marked, Time now) {
    Segment& ack = stack_.segments[id];
    ack.sent = of.sent;
    ack.order = of.order;
    ack.seq = receiver_.arrivals.next();
    ack.dsn = connection_.arrivals.next();
    ack.window_end = options().receive_buffer == 0 ? kNone : ack.dsn + options().receive_buffer;
    ack.carries = Carries::acknowledgement;
    ack.marked = marked;
    ack.block_count = 0;
    if (options().sack && receiver_.arrivals.held() != 0) {
      stack_.blocks[id] = receiver_.blocks;
      ack.block_count = receiver_.block_count;
    }
    receiver_.unanswered = 0;
    receiver_.delayed.at = kNever;
    if (options().acks == Acks::at_once) {
      const Acknowledgement content = tcp_.acknowledgement(id);
      stack_.network.pool().release(id);
      return acknowledged(content, now);
    }
    const std::uint16_t mptcp_bytes = connection_.multipath() ? options().mptcp_ack_bytes : std::uint16_t{0};
    const auto size_bytes = static_cast<std::uint16_t>(options().ack_bytes + mptcp_bytes);
    stack_.send(id, {number_, size_bytes, Ecn::not_ect, connection_.dscp}, subflow_.back, subflow_.destination,
                subflow_.source, now);
  }

  // The block of the latest arrival comes first, then the blocks reported before it (RFC 2018, section 4).
  void note_block(Seq seq) {
    const SackBlock newest = receiver_.arrivals.block_of(seq);
    const auto older = receiver_.blocks;
    const std::uint8_t count = receiver_.block_count;
    receiver_.blocks[0] = newest;
    receiver_.block_count = 1;
    for (std::uint8_t i = 0; i < count && receiver_.block_count < receiver_.blocks.size(); ++i) {
      const bool within = !before(older[i].first, newest.first) && !before(newest.end, older[i].end);
      const bool passed = !before(receiver_.arrivals.next(), older[i].end);
      if (!within && !passed) receiver_.blocks[receiver_.block_count++] = older[i];
    }
  }

  // ---- The socket's clocks.

  // Whether anything is unsent or unacknowledged. A connection of one subflow has all its data in that subflow's socket,
  // as an application writes it; of several, each has the data bound to it.
  [[nodiscard]] bool has_work() const {
    if (!connection_.open || !sender_.established) return false;
    if (sender_.board.outstanding() != 0 || !sender_.bound.empty()) return true;
    return !connection_.multipath() && connection_.next != connection_.segments;
  }

  // The congestion window has room, there is data to send, and the receiver has no room for it. The window of MPTCP is
  // the connection's: data beyond it is bound to no subflow.
  [[nodiscard]] bool waits_for_receiver() const {
    if (options().receive_buffer == 0 || connection_.multipath()) return false;
    return connection_.next != connection_.segments && connection_.next == connection_.window_end && has_window(false);
  }

  Tcp& tcp_;
  Stack& stack_;
  Subflow& subflow_;
  Connection& connection_;
  PathState& path_;
  std::uint32_t number_;
  SenderState& sender_ = subflow_.sender;
  ReceiverState& receiver_ = subflow_.receiver;
};

// ---- The state of all connections.

TcpTables::TcpTables(const TransportOptions& options, Network& network, const std::vector<FlowConfig>& flows)
    : options_(options), waiting_(network.ports().size()) {
  std::size_t subflows = 0;
  for (const FlowConfig& flow : flows) subflows += flow.subflows.size();
  connections_.reserve(flows.size());
  subflows_.reserve(subflows);
  paths_.resize(subflows);
  clocks_.resize(subflows);
  for (const FlowConfig& flow : flows) add_flow(network, flow);
  const auto by_time = [](const Connection& connection) { return connection.control->by_time; };
  if (std::ranges::any_of(connections_, by_time)) cubics_.resize(subflows);
  if (std::ranges::any_of(connections_, &Connection::multipath)) views_.resize(subflows);
}

void TcpTables::add_flow(Network& network, const FlowConfig& flow) {
  const TransportOptions& options = options_;
  const auto number = static_cast<std::uint32_t>(connections_.size());
  const std::uint16_t mptcp_bytes = flow.subflows.size() > 1 ? options.mptcp_bytes : std::uint16_t{0};
  if (options.payload_bytes <= mptcp_bytes) throw std::invalid_argument("MPTCP's options leave no room for payload");
  Connection& connection = connections_.emplace_back();
  connection.first = static_cast<std::uint32_t>(subflows_.size());
  connection.count = static_cast<std::uint32_t>(flow.subflows.size());
  connection.control = flow.congestion_control;
  connection.size_bytes = flow.size_bytes;
  connection.payload_bytes = static_cast<std::uint16_t>(options.payload_bytes - mptcp_bytes);
  if (flow.size_bytes != 0) {
    const std::uint64_t segments = (flow.size_bytes + connection.payload_bytes - 1) / connection.payload_bytes;
    if (segments >= kNone / 2) throw std::invalid_argument("a flow has more than 2^31 segments");
    connection.segments = static_cast<Seq>(segments);
  }
  connection.dscp = checked_dscp(flow.dscp);
  if (options.receive_buffer != 0) connection.window_end = options.receive_buffer;
  for (const SubflowConfig& wanted : flow.subflows) add_subflow(network, wanted, number);
}

void TcpTables::add_subflow(Network& network, const SubflowConfig& wanted, std::uint32_t connection) {
  Router& router = network.router();
  Subflow& subflow = subflows_.emplace_back();
  subflow.connection = connection;
  subflow.number = static_cast<std::uint32_t>(subflows_.size() - 1 - connections_[connection].first);
  subflow.source = wanted.source;
  subflow.destination = wanted.destination;
  subflow.owns_first_port = router.nics().at(wanted.source).uplink != kNone;
  subflow.forward = router.path(wanted.source, wanted.destination, wanted.hash);
  subflow.back = router.path(wanted.destination, wanted.source, wanted.back_hash);
  if (subflow.forward.empty() || subflow.back.empty()) {
    throw std::invalid_argument("no path joins the ends of a subflow");
  }
  subflow.sender.rto = first_rto(options_, network, subflow);
  subflow.sender.ssthresh = options_.ssthresh;
  subflow.sender.dup_threshold = options_.duplicates();
  paths_[subflows_.size() - 1].window = options_.initial_window;
}

std::unique_ptr<Transport> TcpTables::of_partition(Stack& stack, std::optional<AgentConfig>&& agent) {
  return std::make_unique<Tcp>(stack, *this, std::move(agent));
}

FlowProgress TcpTables::flow(std::uint32_t number) const {
  const Connection& of = connections_[number];
  return {of.delivered_bytes(), of.started, of.completed};
}

SubflowReading TcpTables::subflow(std::uint32_t number, Time now) const {
  const Subflow& of = subflows_[number];
  const SenderState& sender = of.sender;
  const Connection& connection = connections_[of.connection];
  const std::uint32_t acked_pkts = sender.board.una() - sender.abandoned;
  return {.window_pkts = paths_[number].window,
          .srtt = sender.rtt.srtt,
          .rtt_variance = sender.rtt.variance,
          .retransmits = sender.retransmits,
          .timeouts = sender.timeouts,
          .acked_pkts = acked_pkts,
          .acked_bytes = std::uint64_t{acked_pkts} * connection.payload_bytes,
          .unacked_pkts = sender.board.outstanding(),
          .unsent_bytes = unsent_bytes(connection, sender, options_.send_buffer),
          .busy = clocks_[number].busy_at(sender, now),
          .rwnd_limited = clocks_[number].rwnd_limited_at(sender, now),
          .established = sender.established};
}

SubflowRoute TcpTables::route(std::uint32_t subflow) const {
  const Subflow& of = subflows_[subflow];
  return {of.source, of.destination, of.forward, of.back};
}

std::uint32_t TcpTables::fewest_bytes() const {
  std::uint32_t fewest = std::min<std::uint32_t>(options_.ack_bytes, options_.payload_bytes + options_.header_bytes);
  if (options_.probe_after != 0) fewest = std::min(fewest, options_.header_bytes + 1U);
  for (const Connection& each : connections_) {
    const std::uint32_t last = each.size_bytes == 0 ? each.payload_bytes : each.payload_of(each.segments - 1);
    fewest = std::min(fewest, options_.header_bytes + last);
  }
  return fewest;
}

namespace {

std::unique_ptr<TransportState> make_tcp(const TransportOptions& options, Network& network,
                                         const std::vector<FlowConfig>& flows) {
  return std::make_unique<TcpTables>(options, network, flows);
}

}  // namespace

const TransportKind kTcp{"tcp", {}, make_tcp};

// ---- Events.

Tcp::Tcp(Stack& stack, TcpTables& tables, std::optional<AgentConfig>&& agent)
    : stack_(stack), connections_(tables.connections_), subflows_(tables.subflows_), paths_(tables.paths_),
      views_(tables.views_), clocks_(tables.clocks_), cubics_(tables.cubics_), waiting_(tables.waiting_) {
  if (agent) agents_ = std::make_unique<Agents>(std::move(*agent), subflows_.size());
  const bool needed = std::ranges::any_of(connections_, [](const Connection& each) { return each.control->by_agent; });
  if (needed && !agents_) throw std::invalid_argument("flows are under an agent, but there is none");
  if (agents_ && agents_->read.has_hops()) stack_.network.pool().measure_packets();
}

void Tcp::received(PacketId id, Time now) {
  const std::uint32_t owner = stack_.network.pool()[id].owner;
  const Carries carries = stack_.segments[id].carries;
  if (carries == Carries::data) return Endpoint(*this, owner).arrived(id, now);
  if (carries == Carries::probe) return Endpoint(*this, owner).probed(id, now);
  if (carries == Carries::syn) return Endpoint(*this, owner).answer_syn(id, now);
  const Acknowledgement segment = acknowledgement(id);
  if (stack_.network.pool().measures_packets()) [[unlikely]] Endpoint(*this, owner).datapath().read_hops(id, now);
  stack_.network.pool().release(id);
  if (carries == Carries::syn_acknowledgement) return Endpoint(*this, owner).established(segment.sent, now);
  Endpoint(*this, owner).acknowledged(segment, now);
}

Acknowledgement Tcp::acknowledgement(PacketId id) const {
  Acknowledgement ack{stack_.segments[id], {}};
  if (ack.block_count != 0) ack.blocks = stack_.blocks[id];
  return ack;
}

void Tcp::expired(Alarm what, std::uint32_t owner, PacketId id, Time now) {
  switch (what) {
    case Alarm::join:
      return join(connections_[owner], now);
    case Alarm::retransmission:
      if (!stack_.timers.expires(subflows_[owner].sender.retransmission, what, id, owner, now)) return;
      return Endpoint(*this, owner).timed_out(now);
    case Alarm::delayed_ack:
      if (!stack_.timers.expires(subflows_[owner].receiver.delayed, what, id, owner, now)) return;
      return Endpoint(*this, owner).delayed_ack_expired(now);
    case Alarm::agent:
      return serve_agent(now);
    case Alarm::pacing:
      if (!stack_.timers.expires(agents_->rest[owner].pacing, what, id, owner, now)) return;
      return Endpoint(*this, owner).send_all(now);
    default:
      return;  // not TCP's
  }
}

void Tcp::expect(PacketId id) const {
  const Packet& packet = stack_.network.pool()[id];
  if (packet.kind == Kind::alarm) {
    if (Timers::alarm_of(packet) != Alarm::nic) return;
    stack_.network.ports()[packet.owner].prefetch();
    prefetch_to_write(&waiting_[packet.owner]);
    return;
  }
  prefetch_to_write(&stack_.segments[id]);
  if (packet.owner >= subflows_.size()) return;  // a source of datagrams
  if (packet.size_bytes <= stack_.options.ack_bytes + stack_.options.mptcp_ack_bytes) {
    subflows_[packet.owner].prefetch_sender();
  } else {
    subflows_[packet.owner].prefetch_receiver();
  }
}

void Tcp::expect_soon(PacketId id) const {
  const Packet& packet = stack_.network.pool()[id];
  if (packet.kind == Kind::alarm) {
    if (Timers::alarm_of(packet) != Alarm::nic) return;
    const std::uint32_t first = waiting_[packet.owner].first;
    if (first != kNone) subflows_[first].prefetch_sender();
    return;
  }
  const Segment& segment = stack_.segments[id];
  const bool of_receiver = segment.carries == Carries::data;
  if (!of_receiver && segment.carries != Carries::acknowledgement) return;
  const Subflow& subflow = subflows_[packet.owner];
  const Connection& connection = connections_[subflow.connection];
  if (of_receiver) {
    prefetch(&connection);
    prefetch_to_write(&connection.arrivals);
    stack_.network.ports()[subflow.back.ports[0]].prefetch();
    subflow.receiver.arrivals.prefetch(segment.seq);
    connection.arrivals.prefetch(segment.dsn);
    return;
  }
  prefetch(&connection);
  prefetch_to_write(&connection.next);
  if (segment.block_count != 0) prefetch(&stack_.blocks[id]);
  stack_.network.ports()[subflow.forward.ports[0]].prefetch();
  subflow.sender.board.prefetch();
  if (connection.control->by_agent) agents_->prefetch(packet.owner);
  const PathState* first = &paths_[packet.owner - subflow.number];
  prefetch_lines(first, first + std::min(connection.count, 8U) - 1);
}

void Tcp::serve_agent(Time now) {
  agents_->link.scheduled = false;
  agents_->link.deliver(now, [&](const AgentCommand& command) {
    if (command.subflow >= subflows_.size()) return;
    Connection& connection = connections_[subflows_[command.subflow].connection];
    if (!connection.control->by_agent || !connection.open) return;
    connection.unsettle(command.subflow);
    Endpoint endpoint(*this, command.subflow);
    if (endpoint.datapath().carry_out(command)) endpoint.send_all(now);
  });
  agents_->schedule(stack_.timers);
}

// ---- Connections.

void Tcp::start(std::uint32_t number, Time now) {
  Connection& connection = connections_[number];
  connection.open = true;
  connection.started = now;
  if (stack_.options.connections == Connections::persistent) take_over_idle(connection);
  if (stack_.options.handshake) return Endpoint(*this, connection.first).connect(now);
  subflows_[connection.first].sender.established = true;
  first_established(connection, now);
  if (connection.alone) {
    distribute(connection, now);
    Endpoint(*this, connection.first).update_clocks(now);
  }
}

std::vector<std::uint32_t>& Tcp::idle(const Connection& connection) {
  const Subflow& first = subflows_[connection.first];
  return idle_[std::uint64_t{first.source} << 32 | first.destination];
}

// The flow goes on where the latest one ended on a connection that is idle now.
void Tcp::take_over_idle(const Connection& connection) {
  std::vector<std::uint32_t>& ended = idle(connection);
  if (ended.empty()) return;
  const Connection& latest = connections_[ended.back()];
  ended.pop_back();
  for (std::uint32_t i = 0; i < std::min(latest.count, connection.count); ++i) {
    const SenderState& from = subflows_[latest.first + i].sender;
    SenderState& to = subflows_[connection.first + i].sender;
    to.ssthresh = from.ssthresh;
    to.rtt = from.rtt;
    to.rto = from.rto;
    to.alpha = from.alpha;
    to.dup_threshold = from.dup_threshold;
    paths_[connection.first + i] = paths_[latest.first + i];
  }
}

// The first subflow can send: the others join, now or later.
void Tcp::first_established(Connection& connection, Time now) {
  const TransportOptions& options = stack_.options;
  connection.alone = true;
  const bool waits = options.join_after_ps != 0 || options.join_after_bytes != 0 || options.on_demand;
  if (!connection.multipath() || !waits) return join(connection, now);
  if (options.join_after_ps == 0) return;
  stack_.timers.schedule(Alarm::join, subflows_[connection.first].connection, stack_.clock.after(now, options.join_after_ps));
}

// The other subflows join, unless they did before.
void Tcp::join(Connection& connection, Time now) {
  if (!connection.open || !connection.alone) return;
  connection.alone = false;
  connection.settled = 0;
  const std::uint32_t end = connection.first + connection.count;
  if (stack_.options.handshake) {
    for (std::uint32_t i = connection.first + 1; i < end; ++i) Endpoint(*this, i).connect(now);
    return;
  }
  for (std::uint32_t i = connection.first + 1; i < end; ++i) subflows_[i].sender.established = true;
  distribute(connection, now);
  for (std::uint32_t i = connection.first; i < end; ++i) Endpoint(*this, i).update_clocks(now);
}

bool Tcp::open_subflow(std::uint32_t number, Time now) {
  SenderState& sender = subflows_[number].sender;
  Connection& connection = connections_[subflows_[number].connection];
  const bool connecting = sender.retransmission.at != kNever;
  if (!connection.open || !connection.alone || sender.established || connecting) return false;
  Endpoint endpoint(*this, number);
  endpoint.begin_anew();
  if (stack_.options.handshake) {
    endpoint.connect(now);
    return true;
  }
  sender.established = true;
  distribute(connection, now);
  endpoint.update_clocks(now);
  return true;
}

bool Tcp::close_subflow(std::uint32_t number, Time now) {
  SenderState& sender = subflows_[number].sender;
  Connection& connection = connections_[subflows_[number].connection];
  if (connection.control->by_agent) throw std::invalid_argument("subflows under an agent stay");
  const bool connecting = !sender.established && sender.retransmission.at != kNever;
  const bool there = sender.established || connecting;
  if (!connection.open || number == connection.first || !there) return false;
  connection.unsettle(number);
  sender.established = false;
  sender.retransmission.at = kNever;
  paths_[number] = {.window = stack_.options.initial_window};  // the others' windows no longer depend on it
  if (!cubics_.empty()) cubics_[number] = {};
  for (Reinjection& waiting : connection.to_reinject) waiting.from = number;  // any other subflow may carry it
  sender.abandoned += sender.board.outstanding();
  reinject(connection, number, now);
  sender.board.close();
  Endpoint(*this, number).update_clocks(now);
  return true;
}

// The sender knows that all data has arrived. Only what readings need is kept of its state.
void Tcp::close(Connection& connection, Time now) {
  connection.open = false;
  connection.to_reinject = {};
  for (std::uint32_t i = connection.first; i < connection.first + connection.count; ++i) {
    Endpoint endpoint(*this, i);
    if (connection.control->by_agent) endpoint.datapath().closed(now);
    SenderState& sender = subflows_[i].sender;
    sender.retransmission.at = kNever;
    sender.board.close();
    sender.bound = {};
    endpoint.update_clocks(now);
  }
  if (stack_.options.connections == Connections::persistent) idle(connection).push_back(subflows_[connection.first].connection);
  stack_.ended(subflows_[connection.first].connection, now);
}

void Tcp::set_path(std::uint32_t subflow, const Path& there, const Path& back) {
  subflows_[subflow].forward = there;
  subflows_[subflow].back = back;
}

// ---- Which subflow carries which data.

// Gives data to subflows until none takes any.
void Tcp::distribute(Connection& connection, Time now) {
  if (!connection.multipath()) return Endpoint(*this, connection.first).send_all(now);
  connection.blocked = false;
  const std::span<SubflowView> views = views_.subspan(connection.first, connection.count);
  for (std::uint32_t i = 0; i < connection.count; ++i) {
    const std::uint32_t subflow = connection.first + i;
    if (!connection.is_settled(subflow)) views[i] = view(subflow);
    assert(views[i] == view(subflow));
  }
  if (binds_early(connection)) return distribute_early(connection, now);
  for (;;) {
    const std::uint32_t chosen = stack_.options.scheduler->choose(views, connection.last_chosen);
    if (chosen == kNone) return;
    if (Endpoint(*this, connection.first + chosen).send_one(now, false)) {
      connection.last_chosen = chosen;
    } else {
      views[chosen].takes = false;
    }
  }
}

// A subflow that had no window at once, and waits for nothing else, would have none until something happens to it: it
// has settled.
void Tcp::distribute_early(Connection& connection, Time now) {
  bind(connection);
  for (std::uint32_t i = connection.first; i < connection.first + connection.count; ++i) {
    Endpoint endpoint(*this, i);
    if (connection.is_settled(i)) {
      assert(!endpoint.send_one(now, false));
      continue;
    }
    const SenderState& sender = subflows_[i].sender;
    if (!sender.busy) endpoint.update_clocks(now);
    const std::uint32_t transmissions = sender.transmissions;
    endpoint.send_all(now);
    const bool sends = connection.open && sender.established && !sender.probing && sender.busy;
    if (sends && sender.limited_by_window && sender.transmissions == transmissions) connection.settle(i);
  }
}

// Binds data to subflows as long as they have room in their buffers.
void Tcp::bind(Connection& connection) {
  const std::span<SubflowView> views = views_.subspan(connection.first, connection.count);
  const Scheduler& scheduler = *stack_.options.scheduler;
  while (connection.has_new(stack_.options.send_buffer)) {
    if (connection.burst_left == 0 || !views[connection.last_chosen].takes) {
      const std::uint32_t chosen = scheduler.choose(views, connection.last_chosen);
      if (chosen == kNone) return;
      connection.last_chosen = chosen;
      connection.burst_left = std::max(1U, scheduler.burst_bytes / stack_.options.payload_bytes);
    }
    SubflowView& chosen = views[connection.last_chosen];
    SenderState& sender = subflows_[connection.first + connection.last_chosen].sender;
    sender.bound.push(connection.next++);
    --connection.burst_left;
    chosen.hold(chosen.held_pkts + 1);
    chosen.takes = chosen.held_pkts < sender.max_held_pkts;
  }
}

SubflowView Tcp::view(std::uint32_t subflow) {
  const TransportOptions& options = stack_.options;
  SenderState& sender = subflows_[subflow].sender;
  const PathState& path = paths_[subflow];
  SubflowView out{.takes = sender.established, .joined = sender.established, .srtt_s = path.rtt_s};
  if (options.scheduler->burst_bytes == 0) return out;
  sender.max_held_pkts = std::max(sender.max_held_pkts, kWindowsHeld * std::max(path.window, options.initial_window));
  if (options.subflow_buffer != 0) {
    sender.max_held_pkts = std::min(sender.max_held_pkts, static_cast<double>(options.subflow_buffer));
  }
  const double pacing = sender.in_slow_start(path.window) ? kPacedInSlowStart : kPaced;
  out.rate_pps = path.rtt_s > 0 ? pacing * path.window / path.rtt_s : 0;
  out.hold(static_cast<double>(sender.bound.size()) + sender.board.outstanding());
  out.takes = sender.established && out.held_pkts < sender.max_held_pkts;
  return out;
}

bool Tcp::has_data_for(Connection& connection, std::uint32_t subflow) {
  if (connection.has_reinjection(subflow)) return true;
  SeqQueue& bound = subflows_[subflow].sender.bound;
  while (!bound.empty() && before(bound.front(), connection.una)) bound.pop();  // another subflow has carried it
  if (!bound.empty()) return true;
  return !binds_early(connection) && connection.has_new(stack_.options.send_buffer);
}

// The data that this subflow sends next. There must be some.
Seq Tcp::take_for(Connection& connection, std::uint32_t subflow) {
  if (connection.has_reinjection(subflow)) return connection.to_reinject[connection.reinjected++].dsn;
  SeqQueue& bound = subflows_[subflow].sender.bound;
  if (bound.empty()) return connection.next++;
  const Seq dsn = bound.front();
  bound.pop();
  return dsn;
}

// Lets the other subflows carry what this one may have lost. One that is alone keeps its data: no other could carry it.
void Tcp::reinject(Connection& connection, std::uint32_t subflow, Time now) {
  bool alone = true;
  for (std::uint32_t i = connection.first; i < connection.first + connection.count; ++i) {
    alone = alone && (i == subflow || !subflows_[i].sender.established);
  }
  if (alone) return;
  const auto give = [&](Seq dsn) {
    if (!before(dsn, connection.una)) connection.to_reinject.push_back({dsn, subflow});
  };
  SenderState& sender = subflows_[subflow].sender;
  sender.board.each_to_reinject(give);
  sender.bound.each(give);
  sender.bound = {};
  distribute(connection, now);
}

// ---- Hosts' queues.

// The subflow sends when there is room.
void Tcp::wait_for_room(PortId port, std::uint32_t subflow) {
  if (subflows_[subflow].sender.waiting_for_nic) return;
  if (waiting_[port].first == kNone) stack_.await_departure(port);
  append_waiting(port, subflow);
}

// A packet has left.
void Tcp::may_send(PortId port, Time now) {
  const Stack::Prompt processed_while_waiting(stack_);
  while (waiting_[port].first != kNone) {
    if (is_full(port, now)) return stack_.await_departure(port);
    const std::uint32_t number = take_waiting(port);
    // `await_departure` is called above, so a sender with more to send joins the list without `wait_for_room`.
    if (Endpoint(*this, number).send_one(now, true)) append_waiting(port, number);
  }
}

// Removes the first sender from the list, or the one with the smallest rank: as in the switches' queues, the first of
// equals.
std::uint32_t Tcp::take_waiting(PortId port) {
  WaitingSenders& waiting = waiting_[port];
  std::uint32_t best = waiting.first;
  std::uint32_t before_best = kNone;
  if (stack_.options.smallest_first) {
    const auto rank = [&](std::uint32_t subflow) {
      return connections_[subflows_[subflow].connection].rank(stack_.options.rank == Rank::sent);
    };
    std::uint32_t least = rank(best);
    std::uint32_t previous = best;
    for (std::uint32_t i = subflows_[best].sender.next_waiting; i != kNone;
         previous = i, i = subflows_[i].sender.next_waiting) {
      if (const std::uint32_t its = rank(i); its < least) {
        least = its;
        best = i;
        before_best = previous;
      }
    }
  }
  SenderState& sender = subflows_[best].sender;
  (before_best == kNone ? waiting.first : subflows_[before_best].sender.next_waiting) = sender.next_waiting;
  if (waiting.last == best) waiting.last = before_best;
  sender.waiting_for_nic = false;
  return best;
}

void Tcp::append_waiting(PortId port, std::uint32_t subflow) {
  WaitingSenders& waiting = waiting_[port];
  SenderState& sender = subflows_[subflow].sender;
  sender.waiting_for_nic = true;
  sender.next_waiting = kNone;
  if (waiting.first == kNone) {
    waiting.first = subflow;
  } else {
    subflows_[waiting.last].sender.next_waiting = subflow;
  }
  waiting.last = subflow;
}

}  // namespace fabric
