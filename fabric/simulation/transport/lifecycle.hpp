// How a connection begins and ends: it starts with one subflow, the others join (RFC 8684, section 3.2), and it closes
// when all its data is acknowledged.
#pragma once

#include <cstdint>

#include "simulation/stack.hpp"

namespace fabric {

class Lifecycle {
 public:
  Lifecycle(Stack& stack, std::uint32_t connection)
      : stack_(stack), number_(connection), connection_(stack.connections[connection]) {}

  void start(Time now);
  // The first subflow can send: the others join, now or later.
  void first_established(Time now);
  // The other subflows join, unless they did before.
  void join(Time now);
  // One more subflow joins. Returns false where that is impossible: the connection has ended, or the subflow is open.
  bool open_subflow(std::uint32_t subflow, Time now);
  // A subflow other than the first leaves, and the others carry what it had not delivered. It can be opened again.
  // Returns false where that is impossible: the connection has ended, or the subflow is not open.
  bool close_subflow(std::uint32_t subflow, Time now);
  // The sender knows that all data has arrived. Only what readings need is kept of its state.
  void close(Time now);

 private:
  [[nodiscard]] std::uint64_t pair() const;
  void begin_anew(std::uint32_t subflow);
  void take_over_idle();

  Stack& stack_;
  std::uint32_t number_;
  Connection& connection_;
};

}  // namespace fabric
