// How simulated end hosts are set up, and the flows between them.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/packet.hpp"
#include "core/units.hpp"
#include "simulation/congestion/congestion.hpp"
#include "simulation/schedulers.hpp"

namespace fabric {

// What a sender writes as the rank of its packets where queues read one (core/packet.hpp): the bytes of the
// connection that are not acknowledged yet, or those sent so far, for when sizes are not known.
enum class Rank : std::uint8_t { remaining, sent };

struct TransportOptions {
  std::uint16_t payload_bytes = 1448;  // of a full segment
  std::uint16_t header_bytes = 66;     // Ethernet, IP, TCP with timestamps
  std::uint16_t ack_bytes = 66;
  std::uint16_t mptcp_bytes = 0;      // of MPTCP's options, which replace payload
  std::uint16_t mptcp_ack_bytes = 0;  // that MPTCP adds to an acknowledgement
  double initial_window = 10;
  double initial_ssthresh = 0;  // packets; 0: none
  Time initial_rto = 1 * kSecond;
  Time min_rto = 200 * kMillisecond;
  Time max_rto = 120 * kSecond;
  Time first_rto = 0;   // before a round trip was measured; 0: after a handshake
  Time timer_scan = 0;  // retransmission timers expire at multiples of it; 0: at any time
  Time delayed_ack = 0;  // 0: every segment is acknowledged at once
  // A host sends each packet after a random time of up to so many transmissions of a full packet on its link, unless
  // the packet had to wait for its queue. Without it, senders keep the phase in which a full queue has a free place, and
  // starve others (Floyd and Jacobson, 1992).
  double processing_frames = 0;
  std::uint32_t processing_seed = 0;
  bool fixed_rto = false;           // the timeout is `min_rto`, always
  std::uint32_t probe_after = 0;    // timeouts in a row, after which only probes are sent; 0: never
  std::uint32_t max_window = 0;     // packets; 0: no limit
  bool persistent = false;          // a flow takes an idle connection between its hosts, with its window
  Rank rank = Rank::remaining;
  bool smallest_first = false;      // senders of a host take turns in the order of their ranks
  bool sack = true;
  bool ecn = false;
  bool ack_at_once = false;  // acknowledgements take no path and no time
  bool reinject = true;
  bool ack_gaps = false;  // data beyond a gap in the connection is acknowledged at once
  bool linux_recovery = false;  // as in Linux, beyond the RFCs (tcp.hpp)
  bool handshake = false;       // a SYN is answered before data is sent
  const Scheduler* scheduler = &kMinRtt;
  std::uint32_t dup_threshold = 3;
  bool adapts_to_reordering = true;  // the duplicate threshold rises where packets overtake each other
  // Further subflows join when the first has been up for this long or has had this much acknowledged; both 0: at once.
  Time join_after = 0;
  std::uint64_t join_after_bytes = 0;
  bool on_demand = false;  // or not by themselves, but each when it is opened (Simulation::open_subflow)
  std::uint32_t nic_queue_pkts = 100;     // of a host; senders wait for room, acknowledgements do not
  std::uint32_t send_buffer_pkts = 0;     // of a connection; 0: no limit
  std::uint32_t receive_buffer_pkts = 0;  // of a connection; 0: no limit
  std::uint32_t subflow_buffer_pkts = 0;  // limit of data bound to a subflow early; 0: no limit
};

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
