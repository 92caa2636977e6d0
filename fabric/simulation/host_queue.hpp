// A host's own transmit queue. Senders wait for room in it and take turns; acknowledgements do not wait.
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
  // The subflow sends when there is room.
  void wait(std::uint32_t subflow);
  // A packet has left.
  void serve(Time now);

 private:
  void append(std::uint32_t subflow);
  void wake_at_next_departure();

  Stack& stack_;
  PortId port_;
};

}  // namespace fabric
