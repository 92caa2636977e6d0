#include "simulation/transport/handshake.hpp"

#include "simulation/schedulers/data_scheduler.hpp"
#include "simulation/transport/lifecycle.hpp"
#include "simulation/transport/sender.hpp"
#include "simulation/transport/socket_info.hpp"

namespace fabric {

void Handshake::connect(Time now) {
  const PacketId id = stack_.network.pool().acquire_or_throw();
  Segment& segment = stack_.segments[id];
  segment.sent = stack_.clock.reading(now);
  segment.carries = Carries::syn;
  Sender(*this).restart_timer(now);
  stack_.send(id, header(), subflow_.forward, subflow_.source, subflow_.destination, now);
}

// RFC 5681, section 3.1: a lost SYN leaves a window of one segment.
void Handshake::retry(Time now) {
  SenderState& sender = subflow_.sender;
  ++sender.timeouts;
  ++sender.retransmits;
  ++sender.backoff;
  path_.window = 1;
  connect(now);
}

void Handshake::answer(PacketId id, Time now) {
  stack_.segments[id].carries = Carries::syn_acknowledgement;
  if (options().ack_at_once) {
    const Time sent = stack_.segments[id].sent;
    stack_.network.pool().release(id);
    return established(sent, now);
  }
  stack_.send(id, header(), subflow_.back, subflow_.destination, subflow_.source, now);
}

void Handshake::established(Time sent, Time now) {
  SenderState& sender = subflow_.sender;
  const bool connecting = sender.retransmission.at != kNever;  // not if it was closed meanwhile
  if (sender.established || !connecting || !connection_.open) return;
  sender.established = true;
  sender.backoff = 0;
  sender.retransmission.at = kNever;
  Sender(*this).sample_rtt(stack_.clock.reading(now) - sent);
  DataScheduler(stack_, connection_).distribute(now);
  SocketInfo(*this).update(now);
  if (number_ == connection_.first) Lifecycle(stack_, subflow_.connection).first_established(now);
}

}  // namespace fabric
