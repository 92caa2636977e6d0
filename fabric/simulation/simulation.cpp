#include "simulation/simulation.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace fabric {

Simulation::Simulation(NetworkConfig network, const TransportOptions& options, const std::vector<FlowConfig>& flows,
                       const std::vector<DatagramConfig>& datagrams, const std::optional<NoiseConfig>& noise,
                       std::optional<AgentConfig> agent, std::uint32_t threads) {
  for (const FlowConfig& flow : flows) subflows_.insert(subflows_.end(), flow.subflows.begin(), flow.subflows.end());
  Network whole(std::move(network));
  whole.prefer_huge_pages();
  tables_.emplace(checked(options), whole, flows, datagrams);
  if (!whole.partitions().several()) {
    partitions_.push_back(std::make_unique<Partition>(*tables_, std::move(whole), flows, 0, noise, std::move(agent)));
    return;
  }
  if (noise) throw std::invalid_argument("a machine that stalls needs an undivided network");
  if (agent) throw std::invalid_argument("an agent needs an undivided network");
  divide(whole, flows, threads);
}

void Simulation::divide(const Network& whole, const std::vector<FlowConfig>& flows, std::uint32_t threads) {
  const Partitions& partitions = whole.partitions();
  if (threads == 0) throw std::invalid_argument("a simulation has at least one thread");
  if (tables_->options.acks == Acks::at_once) throw std::invalid_argument("acknowledgements at once need an undivided network");
  if (whole.routes_each_packet()) throw std::invalid_argument("a path for every packet needs an undivided network");
  if (std::ranges::any_of(whole.ports(), &Port::may_lose)) throw std::invalid_argument("random loss needs an undivided network");
  const Time look_ahead = partitions.look_ahead(whole.ports(), tables_->transport->fewest_bytes());
  if (look_ahead <= 0) throw std::invalid_argument("packets reach other partitions at once: the network needs delay");
  for (std::size_t i = 0; i < partitions.count(); ++i) {
    partitions_.push_back(std::make_unique<Partition>(*tables_, Network(whole, i), flows, i));
  }
  check_followers(whole, flows);
  const auto most = static_cast<std::uint32_t>(partitions.count());
  windows_.emplace(partitions_, std::min(look_ahead, kSecond), std::min(threads, most));
}

// The end of a flow is known at its source.
void Simulation::check_followers(const Network& whole, const std::vector<FlowConfig>& flows) const {
  const Partitions& partitions = whole.partitions();
  for (const FlowConfig& flow : flows) {
    if (flow.after == kNone || partition_of(flow, partitions) == partition_of(flows[flow.after], partitions)) continue;
    throw std::invalid_argument("a flow waits for one from a host of another partition");
  }
}

void Simulation::only_undivided(const char* what) const {
  if (windows_) throw std::invalid_argument(std::string(what) + " need an undivided network");
}

void Simulation::set_path(std::uint32_t number, const Path& there, const Path& back) {
  const SubflowRoute subflow = route(number);
  if (there.empty() || back.empty()) throw std::invalid_argument("a path passes no link");
  for (const Path* path : {&there, &back}) {
    for (const PortId port : path->span()) {
      if (port >= network().ports().size()) throw std::out_of_range("there is no port " + std::to_string(port));
    }
  }
  const Partitions& partitions = network().partitions();
  const bool joined = partitions.joined(partitions.of_nic(subflow.source), there.span()) &&
                      partitions.joined(partitions.of_nic(subflow.destination), back.span());
  if (!joined) throw std::invalid_argument("a path passes links that do not follow one another");
  partitions_.front()->transport().set_path(number, there, back);
}

void Simulation::set_path_ranks(std::uint32_t number, std::uint32_t there, std::uint32_t back) {
  const SubflowRoute subflow = route(number);
  const Router& router = network().router();
  set_path(number, router.path_of_rank(subflow.source, subflow.destination, there),
           router.path_of_rank(subflow.destination, subflow.source, back));
}

bool Simulation::open_subflow(std::uint32_t number) {
  if (!options().on_demand) throw std::invalid_argument("subflows do not join on demand here");
  only_undivided("subflows on demand");
  (void)route(number);
  return partitions_.front()->transport().open_subflow(number, now_);
}

bool Simulation::close_subflow(std::uint32_t number) {
  if (!options().on_demand) throw std::invalid_argument("subflows do not leave on demand here");
  only_undivided("subflows on demand");
  (void)route(number);
  return partitions_.front()->transport().close_subflow(number, now_);
}

void Simulation::set_port_up(PortId port, bool up, Time now) {
  only_undivided("changes of links");
  network().set_port_up(port, up, now, *partitions_.front());
}

void Simulation::set_port_rate(PortId port, std::int64_t rate_bps) {
  only_undivided("changes of links");
  network().set_port_rate(port, rate_bps);
}

void Simulation::reroute(ForwardingTable table) {
  only_undivided("changes of routing");
  network().reroute(std::move(table));
  Router& router = network().router();
  for (std::uint32_t number = 0; number < subflows_.size(); ++number) {
    const SubflowConfig& of = subflows_[number];
    const Path there = router.path(of.source, of.destination, of.hash);
    const Path back = router.path(of.destination, of.source, of.back_hash);
    if (!there.empty() && !back.empty()) partitions_.front()->transport().rerouted(number, there, back);
  }
  for (DatagramSource& source : tables_->datagrams) {
    const Path path = router.path(source.source, source.destination, source.hash);
    if (!path.empty()) source.path = path;
  }
}

void Simulation::run_until(Time limit) {
  if (windows_) {
    windows_->run_until(limit);
  } else {
    partitions_.front()->run_until(limit);
    partitions_.front()->settle(limit);
  }
  now_ = limit;
}

SubflowRoute Simulation::route(std::uint32_t subflow) const {
  if (subflow >= transport().subflows()) throw std::out_of_range("there is no such subflow");
  return transport().route(subflow);
}

Totals Simulation::totals() const {
  Totals sum;
  for (const auto& partition : partitions_) sum += partition->network().totals();
  return sum;
}

std::size_t Simulation::descriptors_in_use() const {
  std::ptrdiff_t sum = windows_ ? -static_cast<std::ptrdiff_t>(windows_->spares()) : 0;
  for (const auto& partition : partitions_) sum += partition->network().pool().in_use();
  return static_cast<std::size_t>(sum);
}

std::uint32_t Simulation::lost_datagrams(std::size_t source) const {
  std::uint32_t sum = 0;
  for (const auto& partition : partitions_) sum += partition->stack().lost_datagrams[source];
  return sum;
}

}  // namespace fabric
