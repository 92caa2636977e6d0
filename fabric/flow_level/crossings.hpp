// The ports that every subflow crosses, and sums over them: what a flow-level model does in every round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace fabric {

class Crossings {
 public:
  // Adds a subflow. Throws std::invalid_argument if it crosses no port.
  void add(std::span<const PortId> path);

  [[nodiscard]] std::size_t subflows() const { return begin_.size() - 1; }
  [[nodiscard]] std::span<const PortId> path(std::size_t subflow) const;
  // Of these subflows only, numbered anew in the same order.
  [[nodiscard]] Crossings only(std::span<const bool> subflows) const;

  // For each subflow the sum, or the least, of the values of the ports that it crosses.
  [[nodiscard]] std::vector<double> sums(std::span<const double> of_port) const;
  [[nodiscard]] std::vector<double> least(std::span<const double> of_port) const;
  // For each of `ports` ports the sum, or the least, of the values of the subflows that cross it; 0, or infinity,
  // without any.
  [[nodiscard]] std::vector<double> load(std::span<const double> of_subflow, std::size_t ports) const;
  [[nodiscard]] std::vector<double> least_at_ports(std::span<const double> of_subflow, std::size_t ports) const;

 private:
  template <class Combine>
  [[nodiscard]] std::vector<double> by_subflow(std::span<const double> of_port, Combine combine) const;
  template <class Combine>
  [[nodiscard]] std::vector<double> by_port(std::span<const double> of_subflow, std::vector<double> out,
                                            Combine combine) const;

  std::vector<PortId> port_;           // subflow after subflow
  std::vector<std::size_t> begin_{0};  // the place of each subflow's first port, and the end
  PortId highest_ = 0;
};

}  // namespace fabric
