// One subflow as the parts of its transport see it: its own state, and that of its connection and its host.
#pragma once

#include <cstdint>
#include <span>

#include "simulation/stack.hpp"

namespace fabric {

inline bool before(Seq a, Seq b) { return static_cast<std::int32_t>(a - b) < 0; }

// Cheap to make and to copy: all state is in the stack's tables.
class Endpoint {
 public:
  Endpoint(Stack& stack, std::uint32_t number)
      : stack_(stack), subflow_(stack.subflows[number]), connection_(stack.connections[subflow_.connection]),
        path_(stack.paths[number]), number_(number) {}

 protected:
  [[nodiscard]] const TransportOptions& options() const { return stack_.options; }
  // The paths of all subflows of the connection.
  [[nodiscard]] std::span<const PathState> siblings() const {
    return {stack_.paths.data() + connection_.first, connection_.count};
  }

  Stack& stack_;
  Subflow& subflow_;
  Connection& connection_;
  PathState& path_;
  std::uint32_t number_;
};

}  // namespace fabric
