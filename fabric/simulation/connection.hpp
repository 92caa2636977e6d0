// The state of TCP and MPTCP: of a connection, of its subflows, and of the sender and the receiver of each. A connection
// counts its data in segments. What each member means is written here; what changes it is in tcp.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory.hpp"
#include "core/packet.hpp"
#include "simulation/arrivals.hpp"
#include "simulation/congestion/congestion.hpp"
#include "simulation/scoreboard.hpp"
#include "simulation/segment.hpp"
#include "simulation/stack.hpp"

namespace fabric {

// A FIFO of sequence numbers. An empty one takes four words.
class SeqQueue {
 public:
  [[nodiscard]] bool empty() const { return head_ == items_.size(); }
  [[nodiscard]] std::size_t size() const { return items_.size() - head_; }
  [[nodiscard]] Seq front() const { return items_[head_]; }
  void push(Seq seq) { items_.push_back(seq); }

  void pop() {
    if (++head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    } else if (head_ >= 64 && head_ * 2 >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }
  template <class Each>
  void each(Each visit) const {
    for (std::size_t i = head_; i < items_.size(); ++i) visit(items_[i]);
  }

 private:
  std::vector<Seq> items_;
  std::size_t head_ = 0;
};

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

// Subflows that have something to send and a full queue before them: a list, linked through their senders.
struct WaitingSenders {
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
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

// Data that a subflow may have lost, to be carried by another subflow.
struct Reinjection {
  Seq dsn;
  std::uint32_t from;  // subflow
};

// What the sender and the receiver change is in cache lines of its own: they may be on two CPUs.
struct alignas(64) Connection {
  std::uint32_t first = 0;  // subflow
  std::uint32_t count = 0;
  const CongestionControl* control = nullptr;
  std::uint64_t size_bytes = 0;  // 0: no end
  Seq segments = kNone;          // kNone: no end
  Time started = kNever;
  std::uint16_t payload_bytes = 0;  // of a full segment
  bool open = false;
  bool alone = false;  // further subflows have not joined yet
  std::uint8_t dscp = 0;
  // State of the sender.
  alignas(64) Seq next = 0;      // the first segment given to no subflow yet
  Seq una = 0;                   // the first not acknowledged
  Seq window_end = kNone;        // the first the receiver has no room for
  std::vector<Reinjection> to_reinject;
  std::size_t reinjected = 0;     // of those
  bool blocked = false;           // a subflow had room and there was no data for it
  std::uint32_t last_chosen = 0;  // subflow
  std::uint32_t burst_left = 0;   // segments it gets before another is chosen
  std::uint32_t settled = 0;      // bit i: subflow i was found without window, and nothing has happened to it since
  // State of the receiver.
  alignas(64) Arrivals arrivals;
  Time completed = kNever;

  // Whether there is data for this subflow that another may have lost. Skips data that has arrived meanwhile.
  [[nodiscard]] bool has_reinjection(std::uint32_t subflow) {
    while (reinjected != to_reinject.size() && static_cast<std::int32_t>(to_reinject[reinjected].dsn - una) < 0) ++reinjected;
    if (reinjected == to_reinject.size()) {
      to_reinject.clear();
      reinjected = 0;
      return false;
    }
    return to_reinject[reinjected].from != subflow;
  }
  [[nodiscard]] bool has_new(std::uint32_t send_buffer_pkts) const {
    if (next == segments || next == window_end) return false;
    return send_buffer_pkts == 0 || next - una < send_buffer_pkts;
  }

  // The bytes that are not acknowledged, or those that were sent; the largest number if the flow has no end.
  [[nodiscard]] std::uint32_t rank(bool by_sent) const {
    const std::uint64_t bytes = by_sent          ? std::uint64_t{next} * payload_bytes
                                : size_bytes == 0 ? std::uint64_t{kNone}
                                                  : size_bytes - std::min(size_bytes, std::uint64_t{una} * payload_bytes);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kNone));
  }
  [[nodiscard]] std::uint64_t delivered_bytes() const {
    const std::uint64_t whole = std::uint64_t{arrivals.next()} * payload_bytes;
    return size_bytes == 0 ? whole : std::min(whole, size_bytes);
  }
  [[nodiscard]] bool multipath() const { return count > 1; }
  // Of one of its subflows. Those beyond the last bit never settle.
  [[nodiscard]] bool is_settled(std::uint32_t subflow) const { return (settled & bit_of(subflow)) != 0; }
  void settle(std::uint32_t subflow) { settled |= bit_of(subflow); }
  void unsettle(std::uint32_t subflow) { settled &= ~bit_of(subflow); }
  [[nodiscard]] std::uint16_t payload_of(Seq dsn) const {
    if (size_bytes == 0 || dsn + 1 != segments) return payload_bytes;
    return static_cast<std::uint16_t>(size_bytes - std::uint64_t{dsn} * payload_bytes);
  }

 private:
  [[nodiscard]] std::uint32_t bit_of(std::uint32_t subflow) const {
    const std::uint32_t place = subflow - first;
    return place < 32 ? 1U << place : 0;
  }
};

// Payload in a subflow's socket that was not sent yet (tcpi_notsent_bytes). An application without end fills the send
// buffer; without a limit to that buffer, it writes only when there is room in the window.
inline std::uint64_t unsent_bytes(const Connection& connection, const SenderState& sender, std::uint32_t send_buffer_pkts) {
  if (!connection.open) return 0;
  if (connection.multipath()) {
    std::uint64_t bytes = 0;
    sender.bound.each([&](Seq dsn) { bytes += connection.payload_of(dsn); });
    return bytes;
  }
  const std::uint64_t sent = std::uint64_t{connection.next} * connection.payload_bytes;
  const std::uint64_t left = connection.size_bytes > sent ? connection.size_bytes - sent : 0;
  if (send_buffer_pkts == 0) return left;
  const Seq held = connection.next - connection.una;
  const std::uint64_t free_pkts = send_buffer_pkts - std::min(held, send_buffer_pkts);
  const std::uint64_t room = free_pkts * connection.payload_bytes;
  return connection.size_bytes == 0 ? room : std::min(room, left);
}

}  // namespace fabric
