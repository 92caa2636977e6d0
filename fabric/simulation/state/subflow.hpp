// The state of one TCP connection, or of one subflow of an MPTCP connection: of its sender and of its receiver.
#pragma once

#include <array>
#include <cstdint>

#include "core/packet.hpp"
#include "core/prefetch.hpp"
#include "simulation/timers.hpp"
#include "simulation/state/arrivals.hpp"
#include "simulation/state/scoreboard.hpp"
#include "simulation/state/seq_queue.hpp"

namespace fabric {

inline constexpr std::uint8_t kMaxBackoff = 16;

enum class Recovery : std::uint8_t { open, fast, timeout };

// RFC 6298, in picoseconds.
struct RttEstimate {
  Time srtt = 0;
  Time variance = 0;

  void sample(Time rtt) {
    if (srtt == 0) {
      srtt = rtt;
      variance = rtt / 2;
      return;
    }
    const Time error = rtt > srtt ? rtt - srtt : srtt - rtt;
    variance += (error - variance) / 4;
    srtt += (rtt - srtt) / 8;
  }
};

// The state of a sender before a loss (RFC 3522): it is restored if nothing was lost.
struct BeforeLoss {
  bool known = false;
  double window = 0;
  double ssthresh = 0;
  std::uint32_t transmissions = 0;
};

// Proportional rate reduction (RFC 6937).
struct Reduction {
  std::uint32_t flight = 0;  // when it began
  std::uint32_t delivered = 0;
  std::uint32_t sent = 0;
  std::int64_t quota = 0;  // packets that may be sent now
};

// What an acknowledgement may touch comes first.
struct SenderState {
  Scoreboard board;
  double ssthresh = 0;
  RttEstimate rtt;
  Time rto = 0;
  LazyAlarm retransmission;
  Seq recover = 0;  // recovery ends when all below is acknowledged
  std::uint32_t transmissions = 0;
  std::uint32_t delivered_order = 0;  // of the latest transmission that is known to have arrived
  std::uint32_t dup_acks = 0;
  std::uint32_t dup_threshold = 3;
  std::int32_t inflation = 0;  // without SACK: of the window, by packets that have left the network
  Seq retransmit_next = 0;     // without SACK, after a timeout: the next segment to retransmit
  std::uint8_t backoff = 0;
  bool established = false;
  Recovery recovery = Recovery::open;
  bool limited_by_window = false;
  bool waiting_for_nic = false;
  bool busy = false;  // what its SocketClock counts
  bool rwnd_limited = false;
  bool probing = false;  // after several timeouts in a row: only probes are sent
  SeqQueue bound;  // data that only this subflow carries, not sent yet
  Reduction reduction;
  BeforeLoss before_loss;
  double max_held_pkts = 0;  // its buffer never shrinks
  std::uint32_t retransmits = 0;
  std::uint32_t timeouts = 0;
  std::uint32_t abandoned = 0;  // segments that were not acknowledged when it was closed
  std::uint32_t next_waiting = kNone;
  // Shares of marked packets (RFC 8257, section 3.3).
  double alpha = 1.0;
  Seq alpha_end = 0;
  Seq reduced_until = 0;  // marks count once per window
  std::uint32_t acked = 0;
  std::uint32_t acked_marked = 0;

  [[nodiscard]] bool in_slow_start(double window) const { return ssthresh == 0 || window < ssthresh; }
};

// How long a sender has had anything unsent or unacknowledged, and how long of that only the receiver's window
// held it back: tcpi_busy_time and tcpi_rwnd_limited (tcp_chrono_start, net/ipv4/tcp_output.c).
struct SocketClock {
  Time busy = 0;
  Time busy_since = 0;
  Time rwnd_limited = 0;
  Time rwnd_limited_since = 0;

  [[nodiscard]] Time busy_at(const SenderState& sender, Time now) const { return busy + (sender.busy ? now - busy_since : 0); }
  [[nodiscard]] Time rwnd_limited_at(const SenderState& sender, Time now) const {
    return rwnd_limited + (sender.rwnd_limited ? now - rwnd_limited_since : 0);
  }
};

// What an acknowledgement reports about the segment it answers.
struct Answered {
  Time sent = 0;
  std::uint32_t order = 0;
};

// What every segment touches is in the first cache line.
struct alignas(64) ReceiverState {
  Arrivals arrivals;
  LazyAlarm delayed;
  std::uint8_t block_count = 0;
  bool last_marked = false;
  std::uint8_t unanswered = 0;  // segments without an acknowledgement yet
  SackBlocks blocks{};
  Answered first_unanswered;
};

// A segment that arrives touches the cache lines up to `back`, an acknowledgement those that follow.
struct Subflow {
  ReceiverState receiver;
  Path back;
  std::uint32_t connection = 0;
  std::uint32_t number = 0;  // within it
  NicId source = kNone;
  NicId destination = kNone;
  bool owns_first_port = true;  // false where hosts forward: packets of others pass it too
  Path forward;
  SenderState sender;

  void prefetch_receiver() const { prefetch_lines(&receiver, &connection); }
  void prefetch_sender() const { prefetch_lines(&connection, &sender.before_loss); }
};

}  // namespace fabric
