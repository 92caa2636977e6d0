#include "simulation/transport/receiver.hpp"

#include "simulation/transport/sender.hpp"

namespace fabric {

void Receiver::arrived(PacketId id, Time now) {
  const Segment& segment = stack_.segments[id];
  const Answered answered{segment.sent, segment.order};
  const bool marked = stack_.network.pool()[id].ecn == Ecn::ce;
  // When marks change, the withheld acknowledgement goes first, so that the sender can tell which were marked.
  if (receiver_.unanswered != 0 && marked != receiver_.last_marked) {
    acknowledge(stack_.network.pool().acquire_or_throw(), receiver_.first_unanswered, receiver_.last_marked, now);
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
  if (options().delayed_ack != 0 && calm && receiver_.unanswered == 0) {
    receiver_.unanswered = 1;
    receiver_.first_unanswered = answered;
    stack_.network.pool().release(id);
    const Time when = stack_.clock.after(now, options().delayed_ack);
    stack_.timers.set(receiver_.delayed, Alarm::delayed_ack, number_, when);
    return;
  }
  receiver_.last_marked = marked;
  acknowledge(id, receiver_.unanswered != 0 ? receiver_.first_unanswered : answered, marked, now);
}

// All data has arrived. Only what readings need is kept.
void Receiver::complete(Time now) {
  connection_.completed = now;
  connection_.arrivals.release();
  for (std::uint32_t i = connection_.first; i < connection_.first + connection_.count; ++i) {
    stack_.subflows[i].receiver.arrivals.release();
  }
}

void Receiver::probed(PacketId id, Time now) {
  const Segment& segment = stack_.segments[id];
  acknowledge(id, {segment.sent, segment.order}, receiver_.last_marked, now);
}

void Receiver::delayed_ack_expired(Time now) {
  if (receiver_.unanswered == 0) return;
  acknowledge(stack_.network.pool().acquire_or_throw(), receiver_.first_unanswered, receiver_.last_marked, now);
}

void Receiver::acknowledge(PacketId id, Answered of, bool marked, Time now) {
  write(id, of, marked);
  receiver_.unanswered = 0;
  receiver_.delayed.at = kNever;
  if (options().ack_at_once) {
    const Acknowledgement ack = stack_.acknowledgement(id);
    stack_.network.pool().release(id);
    return Sender(*this).acknowledged(ack, now);
  }
  const std::uint16_t mptcp_bytes = connection_.multipath() ? options().mptcp_ack_bytes : std::uint16_t{0};
  const auto size_bytes = static_cast<std::uint16_t>(options().ack_bytes + mptcp_bytes);
  stack_.send(id, {number_, size_bytes, Ecn::not_ect, connection_.dscp}, subflow_.back, subflow_.destination,
              subflow_.source, now);
}

void Receiver::write(PacketId id, Answered of, bool marked) const {
  Segment& ack = stack_.segments[id];
  ack.sent = of.sent;
  ack.order = of.order;
  ack.seq = receiver_.arrivals.next();
  ack.dsn = connection_.arrivals.next();
  ack.window_end = options().receive_buffer_pkts == 0 ? kNone : ack.dsn + options().receive_buffer_pkts;
  ack.carries = Carries::acknowledgement;
  ack.marked = marked;
  ack.block_count = 0;
  if (options().sack && receiver_.arrivals.held() != 0) {
    stack_.blocks[id] = receiver_.blocks;
    ack.block_count = receiver_.block_count;
  }
}

// The block of the latest arrival comes first, then the blocks reported before it (RFC 2018, section 4).
void Receiver::note_block(Seq seq) {
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

}  // namespace fabric
