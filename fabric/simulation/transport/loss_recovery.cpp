#include "simulation/transport/loss_recovery.hpp"

#include <algorithm>
#include <cmath>

#include "simulation/ccp/datapath.hpp"
#include "simulation/schedulers/data_scheduler.hpp"
#include "simulation/transport/congestion_window.hpp"
#include "simulation/transport/handshake.hpp"
#include "simulation/transport/sender.hpp"

namespace fabric {

namespace {

constexpr std::uint32_t kMaxReordering = 300;  // net.ipv4.tcp_max_reordering


}  // namespace

void LossRecovery::acknowledged(const Acknowledgement& ack, std::uint32_t fresh, Time now) {
  if (options().sack) {
    acknowledged_with_sack(ack, fresh, now);
  } else {
    acknowledged_without_sack(ack, fresh, now);
  }
}

void LossRecovery::acknowledged_with_sack(const Acknowledgement& ack, std::uint32_t fresh, Time now) {
  // A duplicate acknowledgement means that a segment may be lost: the window does not grow until that is known
  // (RFC 5681, section 3.2), unless packets are reordered all the time.
  const bool orderly = fresh != 0 || sender_.dup_threshold > options().dup_threshold;
  for (std::uint8_t i = 0; i < ack.block_count; ++i) fresh += sender_.board.sack(ack.blocks[i]);
  CongestionWindow window(*this);
  window.react_to_marks(ack, fresh);
  raise_threshold(sender_.board.take_reordering());
  sender_.board.detect_losses(threshold(), sender_.delivered_order);
  if (sender_.recovery != Recovery::open && !before(sender_.board.una(), sender_.recover)) {
    sender_.recovery = Recovery::open;
    sender_.before_loss.known = false;
  }
  if (sender_.recovery == Recovery::open && sender_.board.something_lost()) {
    begin(now);
  } else if (sender_.recovery != Recovery::fast && orderly) {
    window.grow(fresh, now);
  }
  if (sender_.recovery == Recovery::fast && reduces_proportionally(options())) update_reduction(fresh);
}

// NewReno. The window is inflated by the number of packets that have left the network.
void LossRecovery::acknowledged_without_sack(const Segment& ack, std::uint32_t fresh, Time now) {
  CongestionWindow window(*this);
  window.react_to_marks(ack, fresh);
  if (before(sender_.retransmit_next, sender_.board.una())) sender_.retransmit_next = sender_.board.una();
  if (fresh == 0) return duplicate(ack, now);
  sender_.dup_acks = 0;
  const bool all = !before(sender_.board.una(), sender_.recover);
  if (sender_.recovery == Recovery::fast && !all) return partial_acknowledgement(fresh, now);
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
  window.grow(std::min(fresh, limit), now);
}

void LossRecovery::partial_acknowledgement(std::uint32_t fresh, Time now) {
  const auto whole = static_cast<std::int32_t>(path_.window);
  sender_.inflation = std::max(sender_.inflation - static_cast<std::int32_t>(fresh) + 1, 1 - whole);
  retransmit_first(now);
}

void LossRecovery::duplicate(const Segment& ack, Time now) {
  const Seq una = sender_.board.una();
  if (ack.seq != una || sender_.board.outstanding() == 0 || sender_.recovery == Recovery::timeout) return;
  ++sender_.dup_acks;
  if (sender_.recovery == Recovery::fast) {
    ++sender_.inflation;
  } else if (sender_.dup_acks >= threshold() && !before(una, sender_.recover)) {
    begin(now);
    sender_.inflation = static_cast<std::int32_t>(sender_.dup_acks);
    retransmit_first(now);
  }
}

void LossRecovery::retransmit_first(Time now) {
  ++sender_.transmissions;
  ++sender_.retransmits;
  Sender(*this).transmit(sender_.board.una(), sender_.board.dsn(sender_.board.una()), true, now);
}

// How many segments must have overtaken another before that counts as lost. A sender waits for a window's worth at
// most (RFC 4653), and for no more than can still arrive.
std::uint32_t LossRecovery::threshold() const {
  if (sender_.dup_threshold > options().dup_threshold) {
    const auto window = static_cast<std::uint32_t>(path_.window);
    return std::max(options().dup_threshold, std::min(sender_.dup_threshold, window));
  }
  if (!options().linux_recovery) return sender_.dup_threshold;
  const std::uint32_t outstanding = sender_.board.outstanding();
  if (outstanding > sender_.dup_threshold || outstanding < 2) return sender_.dup_threshold;
  return DataScheduler(stack_, connection_).has_data_for(number_) ? sender_.dup_threshold : outstanding - 1;
}

void LossRecovery::raise_threshold(std::uint32_t reordering) {
  if (!options().adapts_to_reordering) return;
  sender_.dup_threshold = std::max(sender_.dup_threshold, std::min(reordering, kMaxReordering));
}

// Fast recovery. Marks may have reduced this very window already (RFC 3168, section 6.1.2).
void LossRecovery::begin(Time now) {
  CongestionWindow(*this).save();
  if (!options().ecn || !before(sender_.board.una(), sender_.reduced_until)) CongestionWindow(*this).reduce();
  path_.window = std::min(path_.window, sender_.ssthresh);
  sender_.recovery = Recovery::fast;
  sender_.recover = sender_.board.next();
  sender_.reduction = {.flight = std::max(sender_.board.outstanding(), 1U), .delivered = 0, .sent = 0, .quota = 0};
  Sender(*this).restart_timer(now);
}

// RFC 6937, section 3: while a window is acknowledged, the packets in the network fall to the threshold in
// proportion; below it they rise to it as in slow start.
void LossRecovery::update_reduction(std::uint32_t fresh) {
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

void LossRecovery::undo_if_spurious(const Segment& ack) {
  if (is_spurious(ack)) undo();
}

// The segment thought lost is acknowledged before any retransmission can have been.
bool LossRecovery::is_spurious(const Segment& ack) const {
  const bool may = sender_.recovery == Recovery::fast ||
                   (options().linux_recovery && sender_.recovery == Recovery::timeout);
  return may && options().adapts_to_reordering && sender_.before_loss.known &&
         !before(sender_.before_loss.transmissions, ack.order);
}

void LossRecovery::undo() {
  CongestionWindow(*this).undo();
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

void LossRecovery::timed_out(Time now) {
  if (!connection_.open) return;
  connection_.unsettle(number_);
  if (!sender_.established) return Handshake(*this).retry(now);
  if (sender_.board.outstanding() == 0) return;
  ++sender_.timeouts;
  if (sender_.recovery == Recovery::open) {
    CongestionWindow(*this).save();
    CongestionWindow(*this).reduce();
  }
  sender_.recovery = Recovery::timeout;
  sender_.recover = sender_.board.next();
  sender_.dup_acks = 0;
  sender_.inflation = 0;
  if (connection_.control->by_agent) {
    Datapath(*this).timed_out(now);
  } else {
    CongestionWindow(*this).timed_out();
  }
  sender_.backoff = std::min<std::uint8_t>(static_cast<std::uint8_t>(sender_.backoff + 1), kMaxBackoff);
  if (options().sack) {
    sender_.board.lose_all();
  } else {
    sender_.retransmit_next = sender_.board.una();
  }
  Sender sender(*this);
  sender_.probing = options().probe_after != 0 && sender_.backoff >= options().probe_after;
  sender.restart_timer(now);
  if (sender_.probing) return sender.send_probe(now);
  sender.send_all(now);
  if (options().reinject && connection_.multipath()) DataScheduler(stack_, connection_).reinject(number_, now);
}

}  // namespace fabric
