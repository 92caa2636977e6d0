// What the kernel reports about a socket beside its window and round-trip time (tcp_get_info, net/ipv4/tcp.c).
#pragma once

#include <cstdint>

#include "simulation/transport/endpoint.hpp"

namespace fabric {

class SocketInfo : private Endpoint {
 public:
  using Endpoint::Endpoint;
  explicit SocketInfo(const Endpoint& endpoint) : Endpoint(endpoint) {}

  // Must be called wherever a clock may start or stop.
  void update(Time now);

  [[nodiscard]] Time busy(Time now) const { return clock_.busy_at(sender_, now); }
  [[nodiscard]] Time rwnd_limited(Time now) const { return clock_.rwnd_limited_at(sender_, now); }
  // Payload in the socket that was not sent yet (tcpi_notsent_bytes). An application without end fills the send
  // buffer; without a limit to that buffer, it writes only when there is room in the window.
  [[nodiscard]] std::uint64_t unsent_bytes() const;

 private:
  [[nodiscard]] bool has_work() const;
  [[nodiscard]] bool waits_for_receiver() const;

  SenderState& sender_ = subflow_.sender;
  SocketClock& clock_ = stack_.clocks[number_];
};

}  // namespace fabric
