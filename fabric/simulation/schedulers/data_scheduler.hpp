// Which subflow carries which part of a connection's data. The policy is one of schedulers/.
#pragma once

#include "simulation/stack.hpp"

namespace fabric {

class DataScheduler {
 public:
  DataScheduler(Stack& stack, Connection& connection) : stack_(stack), connection_(connection) {}

  // Gives data to subflows until none takes any.
  void distribute(Time now);
  // Lets the other subflows carry what this one may have lost.
  void reinject(std::uint32_t subflow, Time now);

  // Whether data is bound to subflows before they can send it.
  [[nodiscard]] bool binds_early() const {
    return connection_.multipath() && stack_.options.scheduler->burst_bytes != 0;
  }
  [[nodiscard]] bool has_data_for(std::uint32_t subflow);
  // The data that this subflow sends next. There must be some.
  [[nodiscard]] Seq take_for(std::uint32_t subflow);

 private:
  void distribute_early(Time now);
  void serve(std::uint32_t subflow, Time now);
  void bind();
  [[nodiscard]] SubflowView view(std::uint32_t subflow);

  Stack& stack_;
  Connection& connection_;
};

}  // namespace fabric
