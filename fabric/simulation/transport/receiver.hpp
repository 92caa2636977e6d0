// The receiver of a subflow: which segments have arrived, and when it acknowledges them.
#pragma once

#include "simulation/transport/endpoint.hpp"

namespace fabric {

class Receiver : private Endpoint {
 public:
  using Endpoint::Endpoint;

  // A segment has arrived. The packet is the receiver's from here on.
  void arrived(PacketId id, Time now);
  // A probe is acknowledged and carries nothing new.
  void probed(PacketId id, Time now);
  void delayed_ack_expired(Time now);

 private:
  void complete(Time now);
  // Sends the acknowledgement of this segment in the given packet.
  void acknowledge(PacketId id, Answered of, bool marked, Time now);
  void write(PacketId id, Answered of, bool marked) const;
  void note_block(Seq seq);

  ReceiverState& receiver_ = subflow_.receiver;
};

}  // namespace fabric
