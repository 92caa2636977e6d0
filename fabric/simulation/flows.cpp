#include "simulation/flows.hpp"

#include <algorithm>
#include <stdexcept>

#include "simulation/transport/lifecycle.hpp"

namespace fabric {

namespace {

std::uint16_t payload_of(const FlowConfig& flow, const TransportOptions& options) {
  const std::uint16_t mptcp_bytes = flow.subflows.size() > 1 ? options.mptcp_bytes : std::uint16_t{0};
  if (options.payload_bytes <= mptcp_bytes) throw std::invalid_argument("MPTCP's options leave no room for payload");
  return static_cast<std::uint16_t>(options.payload_bytes - mptcp_bytes);
}

Seq segments_of(const FlowConfig& flow, std::uint16_t payload_bytes) {
  if (flow.size_bytes == 0) return kNone;
  const std::uint64_t segments = (flow.size_bytes + payload_bytes - 1) / payload_bytes;
  if (segments >= kNone / 2) throw std::invalid_argument("a flow has more than 2^31 segments");
  return static_cast<Seq>(segments);
}

void follow(Tables& tables, const FlowConfig& flow, std::uint32_t number) {
  if (flow.after == kNone) return;
  if (flow.after >= number) throw std::invalid_argument("a flow waits for one that comes later");
  Connection& awaited = tables.connections[flow.after];
  if (awaited.then != kNone) throw std::invalid_argument("two flows wait for the same one");
  awaited.then = number;
}

}  // namespace

Time first_rto(const TransportOptions& options, const Network& network, const Subflow& subflow) {
  if (options.first_rto > 0) return options.first_rto;
  if (options.fixed_rto) return options.min_rto;
  if (options.handshake) return options.initial_rto;
  Time round_trip = 0;
  for (const Path* path : {&subflow.forward, &subflow.back}) {
    for (const PortId id : path->span()) {
      const Port& port = network.ports()[id];
      round_trip += port.transmission_time(options.ack_bytes) + port.delay();
    }
  }
  return std::max(options.min_rto, std::min(3 * round_trip, options.initial_rto));
}

namespace {

void add_subflow(Tables& tables, Network& network, const SubflowConfig& wanted, std::uint32_t connection) {
  Router& router = network.router();
  const TransportOptions& options = tables.options;
  Subflow& subflow = tables.subflows.emplace_back();
  subflow.connection = connection;
  subflow.number = static_cast<std::uint32_t>(tables.subflows.size() - 1 - tables.connections[connection].first);
  subflow.source = wanted.source;
  subflow.destination = wanted.destination;
  subflow.owns_first_port = router.nics().at(wanted.source).uplink != kNone;
  subflow.forward = router.path(wanted.source, wanted.destination, wanted.hash);
  subflow.back = router.path(wanted.destination, wanted.source, wanted.back_hash);
  if (subflow.forward.empty() || subflow.back.empty()) {
    throw std::invalid_argument("no path joins the ends of a subflow");
  }
  subflow.sender.rto = first_rto(options, network, subflow);
  subflow.sender.ssthresh = options.initial_ssthresh;
  subflow.sender.dup_threshold = options.dup_threshold;
  tables.paths[tables.subflows.size() - 1].window = options.initial_window;
}

void add_flow(Tables& tables, Network& network, const FlowConfig& flow) {
  const auto number = static_cast<std::uint32_t>(tables.connections.size());
  if (flow.start < 0) throw std::invalid_argument("a flow starts before the simulation does");
  follow(tables, flow, number);
  Connection& connection = tables.connections.emplace_back();
  connection.first = static_cast<std::uint32_t>(tables.subflows.size());
  connection.count = static_cast<std::uint32_t>(flow.subflows.size());
  connection.control = flow.congestion_control;
  connection.size_bytes = flow.size_bytes;
  connection.payload_bytes = payload_of(flow, tables.options);
  connection.segments = segments_of(flow, connection.payload_bytes);
  connection.start = flow.start;
  connection.dscp = checked_dscp(flow.dscp);
  if (tables.options.receive_buffer_pkts != 0) connection.window_end = tables.options.receive_buffer_pkts;
  for (const SubflowConfig& wanted : flow.subflows) add_subflow(tables, network, wanted, number);
}

}  // namespace

std::uint8_t checked_dscp(std::uint8_t dscp) {
  if (dscp > kDscpBits) throw std::invalid_argument("a class of service has six bits: 0 to 63");
  return dscp;
}

void add_flows(Tables& tables, Network& network, const std::vector<FlowConfig>& flows) {
  std::size_t subflows = 0;
  for (const FlowConfig& flow : flows) subflows += flow.subflows.size();
  tables.connections.reserve(flows.size());
  tables.subflows.reserve(subflows);
  tables.paths.resize(subflows);
  tables.clocks.resize(subflows);
  for (const FlowConfig& flow : flows) add_flow(tables, network, flow);
  const auto by_time = [](const Connection& connection) { return connection.control->by_time; };
  if (std::ranges::any_of(tables.connections, by_time)) tables.cubics.resize(subflows);
  if (std::ranges::any_of(tables.connections, &Connection::multipath)) tables.views.resize(subflows);
}

std::size_t partition_of(const Stack& stack, std::uint32_t connection) {
  const Partitions& partitions = stack.network.partitions();
  return partitions.several() ? partitions.of_nic(stack.subflows[stack.connections[connection].first].source) : 0;
}

FlowStarts::FlowStarts(Stack& stack, const std::vector<FlowConfig>& flows, std::size_t partition) : stack_(stack) {
  for (std::uint32_t number = 0; number < flows.size(); ++number) {
    if (flows[number].after == kNone && partition_of(stack, number) == partition) by_start_.push_back(number);
  }
  std::stable_sort(by_start_.begin(), by_start_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return flows[a].start < flows[b].start;
  });
  if (!by_start_.empty()) stack_.timers.schedule(Alarm::start, kNone, flows[by_start_.front()].start);
}

void FlowStarts::start_due(Time now) {
  for (; started_ != by_start_.size(); ++started_) {
    const std::uint32_t number = by_start_[started_];
    const Time start = stack_.connections[number].start;
    if (start > now) {
      stack_.timers.schedule(Alarm::start, kNone, start);
      return;
    }
    Lifecycle(stack_, number).start(now);
  }
}

}  // namespace fabric
