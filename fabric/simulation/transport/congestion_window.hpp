// The congestion window of a subflow: growth by acknowledgements, reduction by losses and by ECN marks. The laws are
// those of congestion/.
#pragma once

#include "simulation/transport/endpoint.hpp"

namespace fabric {

class CongestionWindow : private Endpoint {
 public:
  using Endpoint::Endpoint;
  explicit CongestionWindow(const Endpoint& endpoint) : Endpoint(endpoint) {}

  // `fresh` packets are newly known to have arrived.
  void grow(std::uint32_t fresh, Time now);
  void react_to_marks(const Segment& ack, std::uint32_t fresh);
  void reduce();
  // The state before a reduction is kept, and restored if nothing was lost.
  void save();
  void undo();
  void timed_out();

 private:
  void limit();
  void update_alpha(const Segment& ack, std::uint32_t fresh);

  SenderState& sender_ = subflow_.sender;
};

}  // namespace fabric
