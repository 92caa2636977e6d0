// What a sender does about losses: RFC 6675 with SACK, RFC 6582 without, RFC 6298 when no acknowledgement comes.
//
// As in Linux, the duplicate threshold rises to the reordering seen (tcp_reordering), a spurious fast recovery is
// undone by timestamps (RFC 3522), and a retransmission counts as lost once packets sent after it have arrived
// (RACK, RFC 8985). None of these acts where packets keep their order and arrive once.
// minTCP (pFabric, SIGCOMM 2013, section 4.3) reacts to timeouts alone, which are all equally long: `fixed_rto`, and a
// duplicate threshold that is never reached. After `probe_after` of them in a row it sends one probe at each timeout,
// until any acknowledgement comes.
// `linux_recovery` adds three things: the window shrinks in proportion to what arrives (RFC 6937), spurious timeouts
// are undone too, and the duplicate threshold falls at the end of the data (RFC 5827).
#pragma once

#include "simulation/transport/endpoint.hpp"

namespace fabric {

// Whether proportional rate reduction (RFC 6937) governs fast recovery.
inline bool reduces_proportionally(const TransportOptions& options) { return options.linux_recovery && options.sack; }

class LossRecovery : private Endpoint {
 public:
  using Endpoint::Endpoint;
  explicit LossRecovery(const Endpoint& endpoint) : Endpoint(endpoint) {}

  // `fresh` segments are newly acknowledged.
  void acknowledged(const Acknowledgement& ack, std::uint32_t fresh, Time now);
  // Restores the window if the acknowledgement shows that nothing was lost.
  void undo_if_spurious(const Segment& ack);
  // The retransmission timer has expired.
  void timed_out(Time now);

 private:
  void acknowledged_with_sack(const Acknowledgement& ack, std::uint32_t fresh, Time now);
  void acknowledged_without_sack(const Segment& ack, std::uint32_t fresh, Time now);
  void partial_acknowledgement(std::uint32_t fresh, Time now);
  void duplicate(const Segment& ack, Time now);
  void retransmit_first(Time now);
  [[nodiscard]] std::uint32_t threshold() const;
  void raise_threshold(std::uint32_t reordering);
  void begin(Time now);
  void update_reduction(std::uint32_t fresh);
  [[nodiscard]] bool is_spurious(const Segment& ack) const;
  void undo();

  SenderState& sender_ = subflow_.sender;
};

}  // namespace fabric
