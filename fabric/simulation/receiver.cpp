#include "simulation/simulation.hpp"

namespace fabric {

void Simulation::received(std::uint32_t number, PacketId id, Time now) {
  Subflow& subflow = subflows_[number];
  Receiver& receiver = subflow.receiver;
  Connection& connection = connections_[subflow.connection];
  const Segment& segment = segments_[id];
  const Answered answered{segment.sent, segment.order};
  const bool marked = network_.pool()[id].ecn == Ecn::ce;
  // What was withheld goes first where marks change, so that the sender can tell which were marked.
  if (receiver.unanswered != 0 && marked != receiver.last_marked) {
    answer(number, descriptor(), receiver.first_unanswered, receiver.last_marked, now);
  }
  const bool is_next = segment.seq == receiver.arrivals.next();
  const bool in_order = is_next && receiver.arrivals.held() == 0;
  const bool fresh = receiver.arrivals.add(segment.seq);
  if (fresh && connection.arrivals.add(segment.dsn) && connection.arrivals.next() == connection.segments &&
      connection.completed == kNever) {
    connection.completed = now;
  }
  if (options_.sack && receiver.arrivals.held() != 0 && fresh && !is_next) note_block(receiver, segment.seq);
  const bool calm = in_order && marked == receiver.last_marked && connection.completed == kNever &&
                    (!options_.ack_gaps || connection.arrivals.held() == 0);
  if (options_.delayed_ack != 0 && calm && receiver.unanswered == 0) {
    receiver.unanswered = 1;
    receiver.first_unanswered = answered;
    network_.pool().release(id);
    set(receiver.delayed, Alarm::delayed_ack, number, after(now, options_.delayed_ack));
    return;
  }
  receiver.last_marked = marked;
  answer(number, id, receiver.unanswered != 0 ? receiver.first_unanswered : answered, marked, now);
}

// The descriptor is the acknowledgement's from here on.
void Simulation::answer(std::uint32_t number, PacketId id, Answered of, bool marked, Time now) {
  Subflow& subflow = subflows_[number];
  Receiver& receiver = subflow.receiver;
  const Connection& connection = connections_[subflow.connection];
  Segment& ack = segments_[id];
  ack.sent = of.sent;
  ack.order = of.order;
  ack.seq = receiver.arrivals.next();
  ack.dsn = connection.arrivals.next();
  ack.window_end = options_.receive_buffer_pkts == 0 ? kNone : ack.dsn + options_.receive_buffer_pkts;
  ack.carries = Carries::acknowledgement;
  ack.marked = marked;
  ack.block_count = 0;
  if (options_.sack && receiver.arrivals.held() != 0) {
    ack.blocks = receiver.blocks;
    ack.block_count = receiver.block_count;
  }
  receiver.unanswered = 0;
  receiver.delayed.at = kNever;
  if (options_.ack_at_once) {
    const Segment copy = ack;
    network_.pool().release(id);
    return acknowledged(number, copy, now);
  }
  Packet& packet = network_.pool()[id];
  packet.kind = Kind::packet;
  packet.owner = number;
  packet.size_bytes = options_.ack_bytes;
  if (connection.multipath()) packet.size_bytes = static_cast<std::uint16_t>(packet.size_bytes + options_.mptcp_ack_bytes);
  packet.ecn = Ecn::not_ect;
  packet.dscp = connection.dscp & kDscpBits;
  lead(packet, subflow.back, subflow.destination, subflow.source);
  network_.inject(id, now, *this);
}

// The block of what arrived last comes first, then those reported before it (RFC 2018, section 4).
void Simulation::note_block(Receiver& receiver, Seq seq) {
  const SackBlock newest = receiver.arrivals.block_of(seq);
  const auto older = receiver.blocks;
  const std::uint8_t count = receiver.block_count;
  receiver.blocks[0] = newest;
  receiver.block_count = 1;
  for (std::uint8_t i = 0; i < count && receiver.block_count < receiver.blocks.size(); ++i) {
    const bool within = static_cast<std::int32_t>(older[i].first - newest.first) >= 0 &&
                        static_cast<std::int32_t>(newest.end - older[i].end) >= 0;
    const bool passed = static_cast<std::int32_t>(older[i].end - receiver.arrivals.next()) <= 0;
    if (!within && !passed) receiver.blocks[receiver.block_count++] = older[i];
  }
}

}  // namespace fabric
