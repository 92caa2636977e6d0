// Simulated end hosts on the fabric, in virtual time: the same links, tables and queues as between real hosts.
//
// All their state is in Tables. What happens is up to one Partition, or to those of the network plan with several threads
// (windows.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulation/options.hpp"
#include "simulation/windows.hpp"
#include "simulation/partition.hpp"

namespace fabric {

class Simulation {
 public:
  // A partitioned network has at most one thread for each partition; any other has one. Throws std::invalid_argument for
  // what cannot exist, and for what only an undivided network can do.
  Simulation(NetworkConfig network, const TransportOptions& options, const std::vector<FlowConfig>& flows,
             const std::vector<DatagramConfig>& datagrams = {}, const std::optional<NoiseConfig>& noise = {},
             std::optional<AgentConfig> agent = {}, std::uint32_t threads = 1);

  // Carries out everything up to and including this instant.
  void run_until(Time limit);

  // Gives a subflow other paths than the router's choice, or the paths of these ranks. Packets in the network keep
  // theirs.
  void set_path(std::uint32_t subflow, const Path& there, const Path& back);
  void set_path_ranks(std::uint32_t subflow, std::uint32_t there, std::uint32_t back);

  // Opens a subflow, if subflows join on demand. Returns false if its connection has ended or it is open already.
  bool open_subflow(std::uint32_t subflow);
  // Closes a subflow other than a connection's first; it can be opened again. Returns false if it is not open.
  bool close_subflow(std::uint32_t subflow);

  void set_port_up(PortId port, bool up, Time now);
  void set_port_rate(PortId port, std::int64_t rate_bps);
  // Routes by other tables from now on (network.hpp), and gives every subflow the path that they hold for it. One that has
  // none any more keeps its path.
  void reroute(ForwardingTable table);
  void restart_max_queues() { network().restart_max_queues(); }

  // Ports and routes, which all partitions share.
  [[nodiscard]] Network& network() { return partitions_.front()->network(); }
  [[nodiscard]] const TransportOptions& options() const { return tables_->options; }
  // Flows and subflows, which all partitions share.
  [[nodiscard]] const TransportState& transport() const { return *tables_->transport; }
  // nullptr where no flow is under an agent; there is one of an undivided network only.
  [[nodiscard]] const Agents* agents() const { return partitions_.front()->transport().agents(); }
  // Throws std::out_of_range if there is no subflow of this number.
  [[nodiscard]] SubflowRoute route(std::uint32_t subflow) const;
  [[nodiscard]] const std::vector<DatagramSource>& datagrams() const { return tables_->datagrams; }
  // Empty where the machine never stalls.
  [[nodiscard]] const std::optional<MachineNoise>& noise() const { return partitions_.front()->stack().clock.noise(); }
  [[nodiscard]] Time now() const { return now_; }
  // Sums over all partitions.
  [[nodiscard]] Totals totals() const;
  [[nodiscard]] std::size_t descriptors_in_use() const;
  [[nodiscard]] std::uint32_t lost_datagrams(std::size_t source) const;

 private:
  void divide(const Network& whole, const std::vector<FlowConfig>& flows, std::uint32_t threads);
  void check_followers(const Network& whole, const std::vector<FlowConfig>& flows) const;
  void only_undivided(const char* what) const;

  std::vector<SubflowConfig> subflows_;
  std::optional<Tables> tables_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::optional<Windows> windows_;  // of several partitions
  Time now_ = 0;                    // everything up to it has happened
};

}  // namespace fabric
