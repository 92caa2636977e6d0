// How simulated end hosts are set up, and the flows between them.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/packet.hpp"
#include "core/units.hpp"
#include "simulation/congestion/congestion.hpp"
#include "simulation/schedulers.hpp"

namespace fabric {

enum class Acks : std::uint8_t { routed, at_once };  // as packets, or without a path and without time
enum class RecoveryRules : std::uint8_t { rfc, linux_kernel };  // the latter's go beyond the RFCs (tcp.hpp)
enum class Connections : std::uint8_t { fresh, persistent };

// What a sender writes as the rank of its packets where queues read one (core/packet.hpp): the bytes of the
// connection that are not acknowledged yet, or those sent so far, for when sizes are not known.
enum class Rank : std::uint8_t { remaining, sent };

struct TransportKind;
extern const TransportKind kTcp;  // tcp.hpp

// Fields that mean the same as one of a spec's StackSpec have its name; times are in ps. Python sets all of them
// (engines/core_setup.py), whatever their defaults are here.
struct TransportOptions {
  const TransportKind* transport = &kTcp;
  std::map<std::string, double> transport_settings;  // those that are not the usual ones
  std::uint16_t payload_bytes = 1448;  // of a full segment
  std::uint16_t header_bytes = 66;     // Ethernet, IP, TCP with timestamps
  std::uint16_t ack_bytes = 66;
  std::uint16_t mptcp_bytes = 0;      // of MPTCP's options, which replace payload
  std::uint16_t mptcp_ack_bytes = 0;  // that MPTCP adds to an acknowledgement
  double initial_window = 10;
  double ssthresh = 0;  // packets, at first; 0: none
  Time initial_rto_ps = 1 * kSecond;
  Time min_rto_ps = 200 * kMillisecond;
  Time max_rto_ps = 120 * kSecond;
  Time first_rto_ps = 0;    // before a round trip was measured; 0: after a handshake
  Time timer_scan_ps = 0;   // retransmission timers expire at multiples of it; 0: at any time
  Time delayed_ack_ps = 0;  // 0: every segment is acknowledged at once
  // A host sends each packet after a random time of up to so many transmissions of a full packet on its link, unless
  // the packet had to wait for its queue. Without it, senders keep the phase in which a full queue has a free place, and
  // starve others (Floyd and Jacobson, 1992).
  double processing_frames = 0;
  std::uint32_t processing_seed = 0;
  bool fixed_rto = false;         // the timeout is `min_rto_ps`, always
  std::uint32_t probe_after = 0;  // timeouts in a row, after which only probes are sent; 0: never
  std::uint32_t max_window = 0;   // packets; 0: no limit
  Connections connections = Connections::fresh;  // a flow takes an idle connection between its hosts, with its window
  Rank rank = Rank::remaining;
  bool smallest_first = false;  // senders of a host take turns in the order of their ranks
  bool sack = true;
  bool ecn = false;
  Acks acks = Acks::routed;
  bool reinject = true;
  bool ack_gaps = false;  // data beyond a gap in the connection is acknowledged at once
  RecoveryRules recovery = RecoveryRules::rfc;
  bool handshake = false;  // a SYN is answered before data is sent
  const Scheduler* scheduler = &kMinRtt;
  std::uint32_t dup_threshold = 0;  // 0: three at first, more where packets overtake each other
  // Further subflows join when the first has been up for this long or has had this much acknowledged; both 0: at once.
  Time join_after_ps = 0;
  std::uint64_t join_after_bytes = 0;
  bool on_demand = false;  // or not by themselves, but each when it is opened (Simulation::open_subflow)
  std::uint32_t nic_queue_pkts = 100;  // of a host; senders wait for room, acknowledgements do not
  std::uint32_t send_buffer = 0;       // packets of a connection; 0: no limit
  std::uint32_t receive_buffer = 0;    // packets of a connection; 0: no limit
  std::uint32_t subflow_buffer = 0;    // packets bound to a subflow early; 0: no limit

  [[nodiscard]] bool linux_recovery() const { return recovery == RecoveryRules::linux_kernel; }
  [[nodiscard]] bool adapts_to_reordering() const { return dup_threshold == 0; }
  // Duplicate acknowledgements that signal a loss at first (RFC 5681, section 3.2).
  [[nodiscard]] std::uint32_t duplicates() const { return dup_threshold == 0 ? 3 : dup_threshold; }
};

// Throws std::invalid_argument for numbers with which nothing could be sent.
inline const TransportOptions& checked(const TransportOptions& options) {
  if (!(options.processing_frames >= 0 && options.processing_frames <= 100)) {
    throw std::invalid_argument("hosts process a packet in 0 to 100 transmissions of a full one");
  }
  if (options.ack_bytes == 0 || options.payload_bytes == 0) throw std::invalid_argument("packets have at least one byte");
  return options;
}

// Throws std::invalid_argument for more than six bits.
inline std::uint8_t checked_dscp(std::uint8_t dscp) {
  if (dscp > kDscpBits) throw std::invalid_argument("a class of service has six bits: 0 to 63");
  return dscp;
}

struct SubflowConfig {
  std::uint32_t source = 0;  // NICs
  std::uint32_t destination = 0;
  std::uint32_t hash = 0;  // of its five-tuple
  std::uint32_t back_hash = 0;
};

// Packets of full size at a constant rate, without acknowledgements.
struct DatagramConfig {
  std::int64_t rate_bps = 0;  // headers included
  std::uint32_t packets = 0;  // 0: as long as the simulation lasts
  Time start = 0;
  SubflowConfig path;
  std::uint8_t dscp = 0;
};

struct FlowConfig {
  std::uint64_t size_bytes = 0;  // 0: as long as the simulation lasts
  Time start = 0;
  std::uint32_t after = kNone;  // an earlier flow: `start` counts from the acknowledgement of all its data
  const CongestionControl* congestion_control = nullptr;
  std::vector<SubflowConfig> subflows;
  std::uint8_t dscp = 0;  // of all its packets
};

}  // namespace fabric
