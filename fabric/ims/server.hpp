// A SIP server behind a UDP socket: a FIFO of finite length and a number of workers.
//
// Like Linux (net/ipv4/udp.c), a reader takes all waiting messages as a batch. Room that messages leave counts as used
// until it is a quarter of the buffer or the batch is done, so a full buffer holds a quarter less at times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/units.hpp"
#include "ims/sip.hpp"

namespace fabric::ims {

struct ServerCounters {
  std::uint64_t arrived = 0;
  std::uint64_t dropped = 0;
  std::uint64_t served = 0;
  std::uint64_t lookups = 0;
  Time busy = 0;          // summed over its workers
  Time queued = 0;        // time integral of the queue's length
  std::size_t longest = 0;
};

class Server {
 public:
  // `buffer`: how many messages of kRoom bytes have room.
  Server(Role role, std::uint32_t workers, std::size_t buffer)
      : role_(role), workers_(workers), buffer_bytes_(buffer * kRoom) {}

  // Whether a worker is free to take the message now. If not, the message waits or is dropped.
  bool arrive(const Message& message, Time now) {
    ++counters_.arrived;
    if (busy_ < workers_) {
      ++busy_;
      return true;
    }
    if (waiting_bytes_ + unreleased_bytes_ >= buffer_bytes_) {
      ++counters_.dropped;
      return false;
    }
    settle(now);
    waiting_.push_back(message);
    waiting_bytes_ += room_of(message);
    counters_.longest = std::max(counters_.longest, waiting_.size());
    return false;
  }

  // A worker is done after `took`: whether it has a next message, which is then in `next`.
  bool finish(Time now, Time took, Message& next) {
    ++counters_.served;
    counters_.busy += took;
    if (waiting_.empty()) {
      --busy_;
      return false;
    }
    settle(now);
    if (batch_ == 0) batch_ = waiting_.size();
    next = waiting_.front();
    waiting_.pop_front();
    waiting_bytes_ -= room_of(next);
    unreleased_bytes_ += room_of(next);
    if (--batch_ == 0 || 4 * unreleased_bytes_ >= buffer_bytes_) unreleased_bytes_ = 0;
    return true;
  }

  void count_lookup() { ++counters_.lookups; }

  [[nodiscard]] const ServerCounters& counters(Time now) {
    settle(now);
    return counters_;
  }

  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  // The share of the buffer that waiting messages take, as /proc/net/udp shows it.
  [[nodiscard]] double fill() const { return static_cast<double>(waiting_bytes_) / static_cast<double>(buffer_bytes_); }
  [[nodiscard]] bool idle() const { return busy_ == 0; }

  bool active = true;          // takes new dialogs
  std::uint32_t dialogs = 0;   // that have it on their path and have not ended

 private:
  void settle(Time now) {
    counters_.queued += static_cast<Time>(waiting_.size()) * (now - settled_);
    settled_ = now;
  }

  Role role_;
  std::uint32_t workers_;
  std::uint32_t busy_ = 0;
  std::size_t buffer_bytes_;
  std::size_t batch_ = 0;  // messages of the batch that wait
  std::size_t waiting_bytes_ = 0;
  std::size_t unreleased_bytes_ = 0;  // of messages that have left and still count
  std::deque<Message> waiting_;
  ServerCounters counters_;
  Time settled_ = 0;
};

}  // namespace fabric::ims
