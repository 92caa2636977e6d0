// What transports have in common whose flows have no subflows: how flows are set up, and what readers see of them. The
// state of such a transport is a WholeFlows of a flow type with members of its own, which says how to make its Transport.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "simulation/arrivals.hpp"
#include "simulation/transport.hpp"

namespace fabric {

struct WholeFlow {
  SubflowRoute route;
  std::uint64_t size_bytes = 0;  // 0: no end
  Seq segments = kNone;          // kNone: no end
  std::uint8_t dscp = 0;
  Time started = kNever;
  Arrivals arrivals;        // of the receiver
  Time completed = kNever;  // the receiver has all
  Time ended = kNever;      // the sender knows that
  std::uint32_t retransmits = 0;
  std::uint32_t timeouts = 0;
};

template <class Flow>
class WholeFlows : public TransportState {
 public:
  WholeFlows(const TransportOptions& wanted, Network& network, const std::vector<FlowConfig>& flows)
      : options(wanted), settings(settings_of("the transport " + name(), wanted.transport->settings, wanted.transport_settings)) {
    if (network.partitions().several()) throw std::invalid_argument(name() + " needs an undivided network");
    for (const FlowConfig& each : flows) add(network.router(), each);
  }

  [[nodiscard]] virtual std::unique_ptr<Transport> protocol(Stack& stack) = 0;

  [[nodiscard]] std::unique_ptr<Transport> of_partition(Stack& stack, std::optional<AgentConfig>&& agent) final {
    if (agent) throw std::invalid_argument("flows of " + name() + " are under no agent");
    return protocol(stack);
  }
  [[nodiscard]] std::uint32_t flows() const override { return static_cast<std::uint32_t>(all.size()); }
  [[nodiscard]] std::uint32_t subflows() const override { return flows(); }
  [[nodiscard]] FlowProgress flow(std::uint32_t number) const override {
    const WholeFlow& of = all[number];
    const std::uint64_t whole = std::uint64_t{of.arrivals.next()} * options.payload_bytes;
    return {of.size_bytes == 0 ? whole : std::min(whole, of.size_bytes), of.started, of.completed};
  }
  [[nodiscard]] SubflowReading subflow(std::uint32_t number, Time now) const override {
    const WholeFlow& of = all[number];
    return {.retransmits = of.retransmits,
            .timeouts = of.timeouts,
            .busy = of.started == kNever ? 0 : std::min(now, of.ended) - of.started,
            .established = of.started != kNever};
  }
  [[nodiscard]] SubflowRoute route(std::uint32_t subflow) const override { return all[subflow].route; }
  [[nodiscard]] std::uint32_t fewest_bytes() const override { return options.ack_bytes; }

  [[nodiscard]] std::uint16_t packet_bytes(const WholeFlow& flow, Seq seq) const {
    const bool full = flow.size_bytes == 0 || seq + 1 != flow.segments;
    const std::uint64_t payload = full ? options.payload_bytes : flow.size_bytes - std::uint64_t{seq} * options.payload_bytes;
    return static_cast<std::uint16_t>(options.header_bytes + payload);
  }

  const TransportOptions& options;
  QueueSettings settings;
  std::vector<Flow> all;

 private:
  [[nodiscard]] std::string name() const { return std::string(options.transport->name); }

  void add(Router& router, const FlowConfig& wanted) {
    if (wanted.subflows.size() != 1) throw std::invalid_argument("a flow of " + name() + " has no subflows");
    const SubflowConfig& ends = wanted.subflows.front();
    Flow& flow = all.emplace_back();
    flow.route = {ends.source, ends.destination, router.path(ends.source, ends.destination, ends.hash),
                  router.path(ends.destination, ends.source, ends.back_hash)};
    if (flow.route.forward.empty() || flow.route.back.empty()) throw std::invalid_argument("no path joins the ends of a flow");
    flow.size_bytes = wanted.size_bytes;
    flow.dscp = checked_dscp(wanted.dscp);
    if (wanted.size_bytes == 0) return;
    const std::uint64_t segments = (wanted.size_bytes + options.payload_bytes - 1) / options.payload_bytes;
    if (segments >= kNone / 2) throw std::invalid_argument("a flow has more than 2^31 segments");
    flow.segments = static_cast<Seq>(segments);
  }
};

// The `make` of a transport that has no state but that of its flows. Protocol is its Transport, made of a Stack and these.
template <class Protocol, class Flow>
std::unique_ptr<TransportState> whole_flows(const TransportOptions& options, Network& network,
                                            const std::vector<FlowConfig>& flows) {
  struct Only final : WholeFlows<Flow> {
    using WholeFlows<Flow>::WholeFlows;
    [[nodiscard]] std::unique_ptr<Transport> protocol(Stack& stack) override { return std::make_unique<Protocol>(stack, *this); }
  };
  return std::make_unique<Only>(options, network, flows);
}

}  // namespace fabric
