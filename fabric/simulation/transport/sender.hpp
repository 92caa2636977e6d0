// The sender of a subflow: when it sends, what it sends, and what an acknowledgement changes.
#pragma once

#include "simulation/transport/endpoint.hpp"

namespace fabric {

class Sender : private Endpoint {
 public:
  using Endpoint::Endpoint;
  explicit Sender(const Endpoint& endpoint) : Endpoint(endpoint) {}

  // Sends until the window or the host's queue is full, or there is no data left.
  void send_all(Time now) {
    while (send_one(now, false)) {
    }
  }
  // Returns false when no segment could be sent. `has_turn`: the host's queue has chosen this sender.
  [[nodiscard]] bool send_one(Time now, bool has_turn);
  // A packet with one byte of data, which the receiver acknowledges.
  void send_probe(Time now);
  void transmit(Seq seq, Seq dsn, bool retransmission, Time now);
  void acknowledged(const Acknowledgement& ack, Time now);
  void sample_rtt(Time rtt);
  // Restarts the retransmission timer, or stops it when nothing is outstanding.
  void restart_timer(Time now);
  [[nodiscard]] bool has_window(bool retransmission) const;

 private:
  [[nodiscard]] std::uint32_t rank() const;
  void send_lost(Time now);
  void send_new(Time now);
  [[nodiscard]] bool advance_connection(const Segment& ack);
  void join_if_enough_acknowledged(Time now);
  [[nodiscard]] Time seen_by_scan(Time expires) const;

  SenderState& sender_ = subflow_.sender;
};

}  // namespace fabric
