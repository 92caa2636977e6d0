// A host's own transmit queue. Senders wait for room in it and take turns, or the one with
// the least to send goes next (`smallest_first`); acknowledgements do not wait.
#pragma once

#include <cstdint>

#include "core/units.hpp"

namespace fabric {

struct Stack;

// Subflows that have something to send and a full queue before them: a list, linked through their senders.
struct WaitingSenders {
  std::uint32_t first = kNone;
  std::uint32_t last = kNone;
};

class HostQueue {
 public:
  HostQueue(Stack& stack, PortId port) : stack_(stack), port_(port) {}

  [[nodiscard]] bool is_full(Time now);
  // Whether free room belongs to one of the senders that wait. An acknowledgement may come at the instant of a
  // departure; its sender must not go before a smaller one that waits.
  [[nodiscard]] bool is_claimed() const;
  // The subflow sends when there is room.
  void wait(std::uint32_t subflow);
  // A packet has left.
  void serve(Time now);

 private:
  // Removes a sender from the list; `before` is the one before it there.
  std::uint32_t take(std::uint32_t subflow, std::uint32_t before);
  std::uint32_t take_smallest();
  void append(std::uint32_t subflow);
  void wake_at_next_departure();

  Stack& stack_;
  PortId port_;
};

}  // namespace fabric
