// How a subflow is set up before data is sent: a SYN and its answer. The acknowledgement of that answer is part of the
// first data.
#pragma once

#include "simulation/transport/endpoint.hpp"

namespace fabric {

class Handshake : private Endpoint {
 public:
  using Endpoint::Endpoint;
  explicit Handshake(const Endpoint& endpoint) : Endpoint(endpoint) {}

  void connect(Time now);
  // The SYN, or its answer, was lost.
  void retry(Time now);
  // A SYN has arrived. The packet carries the answer.
  void answer(PacketId id, Time now);
  // The answer to the SYN sent at this time has arrived.
  void established(Time sent, Time now);

 private:
  [[nodiscard]] PacketHeader header() const { return {number_, options().ack_bytes, Ecn::not_ect, connection_.dscp}; }
};

}  // namespace fabric
