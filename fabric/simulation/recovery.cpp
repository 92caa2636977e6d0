// What a sender does about losses: by RFC 6675 with SACK, by RFC 6582 without, by RFC 6298 when nothing comes back.
//
// As in Linux, the duplicate threshold rises to the reordering seen (tcp_reordering), a fast recovery that was for
// nothing is taken back by timestamps (RFC 3522), and a segment sent again is lost again once what was sent after
// it has arrived (RACK, RFC 8985): none of these acts where packets keep their order and arrive once.
// `linux_recovery` adds what does: the window shrinks in proportion to what arrives (RFC 6937), timeouts are taken
// back too, and the duplicate threshold falls at the end of the data (RFC 5827).
#include <algorithm>
#include <cmath>

#include "simulation/simulation.hpp"

namespace fabric {

namespace {

constexpr std::uint32_t kMostReordering = 300;  // net.ipv4.tcp_max_reordering
constexpr std::uint8_t kMostBackoff = 16;

bool before(Seq a, Seq b) { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace

void Simulation::by_sack(std::uint32_t number, const Segment& ack, std::uint32_t fresh, Time now) {
  Sender& sender = subflows_[number].sender;
  // A duplicate acknowledgement says that something may be lost: the window waits until it is known (RFC 5681,
  // section 3.2), unless packets overtake each other all the time.
  const bool orderly = fresh != 0 || sender.dup_threshold > options_.dup_threshold;
  for (std::uint8_t i = 0; i < ack.block_count; ++i) fresh += sender.board.sack(ack.blocks[i]);
  heed_marks(number, ack, fresh);
  tolerate(sender, sender.board.take_reordering());
  sender.board.judge(threshold(number), sender.delivered_order);
  if (sender.recovery != Recovery::open && !before(sender.board.una(), sender.recover)) {
    sender.recovery = Recovery::open;
    sender.before_loss.known = false;
  }
  if (sender.recovery == Recovery::open && sender.board.something_lost()) {
    recover(number, now);
  } else if (sender.recovery != Recovery::fast && orderly) {
    open_window(number, fresh);
  }
  if (sender.recovery == Recovery::fast && in_proportion()) share_out(sender, fresh);
}

// NewReno, with the window inflated by what has left the network.
void Simulation::without_sack(std::uint32_t number, const Segment& ack, std::uint32_t fresh, Time now) {
  Sender& sender = subflows_[number].sender;
  PathState& path = paths_[number];
  heed_marks(number, ack, fresh);
  if (before(sender.resend_next, sender.board.una())) sender.resend_next = sender.board.una();
  if (fresh == 0) return duplicate(number, ack, now);
  sender.dup_acks = 0;
  const bool all = !before(sender.board.una(), sender.recover);
  if (sender.recovery == Recovery::fast && !all) {
    const auto whole = static_cast<std::int32_t>(path.window);
    sender.inflation = std::max(sender.inflation - static_cast<std::int32_t>(fresh) + 1, 1 - whole);
    return resend_first(number, now);
  }
  if (all) sender.before_loss.known = false;
  if (sender.recovery == Recovery::fast) {
    path.window = std::min(sender.ssthresh, sender.board.outstanding() + 1.0);
    sender.inflation = 0;
    sender.recovery = Recovery::open;
    return;
  }
  // An acknowledgement that closes a gap covers what arrived long ago: it opens the window by one packet after
  // a timeout, by the two of a delayed acknowledgement else (RFC 5681, section 3.1; RFC 3465, section 2.3).
  const std::uint32_t most = sender.recovery == Recovery::timeout ? 1 : 2;
  if (all) sender.recovery = Recovery::open;
  open_window(number, std::min(fresh, most));
}

void Simulation::duplicate(std::uint32_t number, const Segment& ack, Time now) {
  Sender& sender = subflows_[number].sender;
  const Seq una = sender.board.una();
  if (ack.seq != una || sender.board.outstanding() == 0 || sender.recovery == Recovery::timeout) return;
  ++sender.dup_acks;
  if (sender.recovery == Recovery::fast) {
    ++sender.inflation;
  } else if (sender.dup_acks >= threshold(number) && !before(una, sender.recover)) {
    recover(number, now);
    sender.inflation = static_cast<std::int32_t>(sender.dup_acks);
    resend_first(number, now);
  }
}

void Simulation::resend_first(std::uint32_t number, Time now) {
  Sender& sender = subflows_[number].sender;
  ++sender.transmissions;
  ++sender.retransmits;
  transmit(number, sender.board.una(), sender.board.dsn(sender.board.una()), true, now);
}

// Segments that must have overtaken another before that counts as lost. Nobody waits longer than for a window's
// worth (RFC 4653), nor for more than can still come.
std::uint32_t Simulation::threshold(std::uint32_t number) {
  const Sender& sender = subflows_[number].sender;
  if (sender.dup_threshold > options_.dup_threshold) {
    const auto window = static_cast<std::uint32_t>(paths_[number].window);
    return std::max(options_.dup_threshold, std::min(sender.dup_threshold, window));
  }
  if (!options_.linux_recovery) return sender.dup_threshold;
  const std::uint32_t outstanding = sender.board.outstanding();
  if (outstanding > sender.dup_threshold || outstanding < 2) return sender.dup_threshold;
  return may_send_new(number, connections_[subflows_[number].connection]) ? sender.dup_threshold : outstanding - 1;
}

void Simulation::tolerate(Sender& sender, std::uint32_t reordering) const {
  if (!options_.adapts_to_reordering) return;
  sender.dup_threshold = std::max(sender.dup_threshold, std::min(reordering, kMostReordering));
}

// A loss is known: fast recovery begins. Marks may have reduced this very window (RFC 3168, section 6.1.2).
void Simulation::recover(std::uint32_t number, Time now) {
  Sender& sender = subflows_[number].sender;
  remember(number);
  if (!options_.ecn || !before(sender.board.una(), sender.reduced_until)) reduce(number);
  paths_[number].window = std::min(paths_[number].window, sender.ssthresh);
  sender.recovery = Recovery::fast;
  sender.recover = sender.board.next();
  sender.reduction = {.flight = std::max(sender.board.outstanding(), 1U), .delivered = 0, .sent = 0, .quota = 0};
  restart_timer(number, now);
}

bool Simulation::in_proportion() const { return options_.linux_recovery && options_.sack; }

// RFC 6937, section 3: as much is sent as brings the packets in the network from where they were to the threshold
// while a window is acknowledged; below that, slow start up to it.
void Simulation::share_out(Sender& sender, std::uint32_t fresh) {
  Reduction& reduction = sender.reduction;
  const double pipe = sender.board.pipe();
  reduction.delivered += fresh;
  if (pipe > sender.ssthresh) {
    const double due = std::ceil(reduction.delivered * sender.ssthresh / reduction.flight);
    reduction.quota = static_cast<std::int64_t>(due) - reduction.sent;
  } else {
    const std::int64_t behind = std::int64_t{reduction.delivered} - reduction.sent;
    const std::int64_t most = std::max(behind, std::int64_t{fresh}) + 1;
    reduction.quota = std::min(static_cast<std::int64_t>(sender.ssthresh - pipe), most);
  }
  if (reduction.sent == 0) reduction.quota = std::max<std::int64_t>(reduction.quota, 1);
}

void Simulation::remember(std::uint32_t number) {
  Sender& sender = subflows_[number].sender;
  sender.before_loss = {true, paths_[number].window, sender.ssthresh, sender.transmissions};
}

// What was thought lost is acknowledged before anything sent again can have been.
bool Simulation::proves_haste(const Sender& sender, const Segment& ack) const {
  const bool may = sender.recovery == Recovery::fast || (options_.linux_recovery && sender.recovery == Recovery::timeout);
  return may && options_.adapts_to_reordering && sender.before_loss.known &&
         !before(sender.before_loss.transmissions, ack.order);
}

void Simulation::restore(std::uint32_t number) {
  Sender& sender = subflows_[number].sender;
  PathState& path = paths_[number];
  path.window = std::max(path.window, sender.before_loss.window);
  path.since_loss += path.between_loss;
  sender.ssthresh = sender.before_loss.ssthresh;
  sender.before_loss.known = false;
  sender.recovery = Recovery::open;
  sender.recover = sender.board.una();
  sender.inflation = 0;
  tolerate(sender, sender.dup_acks + 1);
  if (options_.sack) {
    sender.board.lose_none();
  } else {
    sender.resend_next = sender.board.next();
  }
}

void Simulation::timed_out(std::uint32_t number, Time now) {
  Subflow& subflow = subflows_[number];
  Sender& sender = subflow.sender;
  Connection& connection = connections_[subflow.connection];
  if (!connection.open) return;
  if (!sender.established) return connect_again(number, now);
  if (sender.board.outstanding() == 0) return;
  ++sender.timeouts;
  if (sender.recovery == Recovery::open) {
    remember(number);
    reduce(number);
  }
  sender.recovery = Recovery::timeout;
  sender.recover = sender.board.next();
  sender.dup_acks = 0;
  sender.inflation = 0;
  paths_[number].window = 1;
  sender.backoff = std::min<std::uint8_t>(static_cast<std::uint8_t>(sender.backoff + 1), kMostBackoff);
  if (options_.sack) {
    sender.board.lose_all();
  } else {
    sender.resend_next = sender.board.una();
  }
  restart_timer(number, now);
  send_all(number, now);
  if (options_.reinject && connection.count > 1) reinject(number, now);
}

// The other subflows carry what this one may have lost.
void Simulation::reinject(std::uint32_t number, Time now) {
  Connection& connection = connections_[subflows_[number].connection];
  const auto give = [&](Seq dsn) {
    if (!before(dsn, connection.una)) connection.to_reinject.push_back({dsn, number});
  };
  Sender& sender = subflows_[number].sender;
  sender.board.each_to_reinject(give);
  sender.bound.each(give);
  sender.bound = {};
  hand_out(subflows_[number].connection, now);
}

void Simulation::restart_timer(std::uint32_t number, Time now) {
  Sender& sender = subflows_[number].sender;
  if (sender.established && sender.board.outstanding() == 0) {
    sender.retransmission.at = kNever;
    return;
  }
  const Time rto = std::min(sender.rto << std::min(sender.backoff, kMostBackoff), options_.max_rto);
  set(sender.retransmission, Alarm::retransmission, number, after(now, rto));
}

}  // namespace fabric
