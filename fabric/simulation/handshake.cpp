// Connections that are set up before data is sent: a SYN, and its answer. The acknowledgement of that rides on the
// first data. Further subflows join when the first is established (RFC 8684, section 3.2).
#include "simulation/simulation.hpp"

namespace fabric {

void Simulation::connect(std::uint32_t number, Time now) {
  const Subflow& subflow = subflows_[number];
  const PacketId id = descriptor();
  Segment& segment = segments_[id];
  segment.sent = now + ahead_;
  segment.carries = Carries::syn;
  Packet& packet = network_.pool()[id];
  packet.kind = Kind::packet;
  packet.owner = number;
  packet.size_bytes = options_.ack_bytes;
  packet.ecn = Ecn::not_ect;
  packet.dscp = connections_[subflow.connection].dscp & kDscpBits;
  lead(packet, subflow.forward, subflow.source, subflow.destination);
  restart_timer(number, now);
  network_.inject(id, now, *this);
}

// RFC 5681, section 3.1: a lost SYN leaves a window of one segment.
void Simulation::connect_again(std::uint32_t number, Time now) {
  Sender& sender = subflows_[number].sender;
  ++sender.timeouts;
  ++sender.retransmits;
  ++sender.backoff;
  paths_[number].window = 1;
  connect(number, now);
}

void Simulation::answer_syn(std::uint32_t number, PacketId id, Time now) {
  const Subflow& subflow = subflows_[number];
  segments_[id].carries = Carries::syn_acknowledgement;
  if (options_.ack_at_once) {
    const Time sent = segments_[id].sent;
    network_.pool().release(id);
    return connected(number, sent, now);
  }
  Packet& packet = network_.pool()[id];
  lead(packet, subflow.back, subflow.destination, subflow.source);
  network_.inject(id, now, *this);
}

void Simulation::connected(std::uint32_t number, Time sent, Time now) {
  Sender& sender = subflows_[number].sender;
  const Connection& connection = connections_[subflows_[number].connection];
  if (sender.established || !connection.open) return;
  sender.established = true;
  sender.backoff = 0;
  sender.retransmission.at = kNever;
  sample_rtt(number, now + ahead_ - sent);
  hand_out(subflows_[number].connection, now);
  keep_time(number, now);
  if (number == connection.first) let_join(subflows_[number].connection, now);
}

}  // namespace fabric
