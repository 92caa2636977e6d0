// The datapath of one subflow under an agent: it folds acknowledgements, reports, and carries out commands.
#pragma once

#include "simulation/ccp/agents.hpp"
#include "simulation/transport/endpoint.hpp"

namespace fabric {

class Datapath : private Endpoint {
 public:
  using Endpoint::Endpoint;
  explicit Datapath(const Endpoint& endpoint) : Endpoint(endpoint) {}

  // After loss recovery has seen the acknowledgement.
  void acknowledged(const Segment& ack, Time now);
  void timed_out(Time now);
  void closed(Time now);
  // Whether pacing lets a segment leave. Otherwise the pacing timer is set.
  [[nodiscard]] bool may_send(Time now) { return state_.rate == 0 || is_due(now); }
  void sent(std::uint32_t bytes, Time now) {
    if (agents_.read.has_rates()) record_sent(now);
    if (state_.rate != 0) pace(bytes, now);
  }
  void carry_out(const AgentCommand& command, Time now);

 private:
  void begin(Time now);
  void take_staged(Time now);
  void fold(Time now);
  void measure(const Segment& ack, Time now);
  void measure_arrivals(const Segment& ack, std::uint32_t fresh, Time now);
  void measure_flight();
  void measure_rates(const DeliverySample& sample);
  [[nodiscard]] std::uint32_t take_losses();
  void tell(AgentEventKind kind, Time now);
  void use_window();
  [[nodiscard]] bool is_due(Time now);
  void record_sent(Time now);
  void pace(std::uint32_t bytes, Time now);
  [[nodiscard]] ccp_u64 micros(Time now) const;
  [[nodiscard]] std::uint32_t mss() const { return connection_.payload_bytes; }

  Agents& agents_ = *stack_.agents;
  SubflowDatapath& state_ = agents_.datapaths[number_];
  SubflowRest& rest_ = agents_.rest[number_];
  FoldUnit& unit_ = agents_.unit;  // works for this subflow between `load` and `store`
  SenderState& sender_ = subflow_.sender;
};

// Passes events that are due to the agent, and carries out its commands.
void serve_agent(Stack& stack, Time now);

}  // namespace fabric
