#include "flow_level/crossings.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace fabric {

namespace {

double sum(double a, double b) { return a + b; }
double smaller(double a, double b) { return std::min(a, b); }

void check(bool fits) {
  if (!fits) throw std::invalid_argument("crossings: there is not one value for each subflow or port");
}

}  // namespace

void Crossings::add(std::span<const PortId> path) {
  if (path.empty()) throw std::invalid_argument("crossings: a subflow crosses no port");
  port_.insert(port_.end(), path.begin(), path.end());
  begin_.push_back(port_.size());
  highest_ = std::max(highest_, *std::max_element(path.begin(), path.end()));
}

std::span<const PortId> Crossings::path(std::size_t subflow) const {
  check(subflow < subflows());
  return {port_.data() + begin_[subflow], begin_[subflow + 1] - begin_[subflow]};
}

Crossings Crossings::only(std::span<const bool> subflows) const {
  check(subflows.size() == this->subflows());
  Crossings out;
  for (std::size_t i = 0; i < subflows.size(); ++i) {
    if (subflows[i]) out.add(path(i));
  }
  return out;
}

template <class Combine>
std::vector<double> Crossings::by_subflow(std::span<const double> of_port, Combine combine) const {
  check(port_.empty() || highest_ < of_port.size());
  std::vector<double> out(subflows());
  std::size_t at = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    double value = of_port[port_[at]];
    while (++at < begin_[i + 1]) value = combine(value, of_port[port_[at]]);
    out[i] = value;
  }
  return out;
}

template <class Combine>
std::vector<double> Crossings::by_port(std::span<const double> of_subflow, std::vector<double> out,
                                       Combine combine) const {
  check(of_subflow.size() == subflows() && (port_.empty() || highest_ < out.size()));
  std::size_t at = 0;
  for (std::size_t i = 0; i < of_subflow.size(); ++i) {
    for (; at < begin_[i + 1]; ++at) out[port_[at]] = combine(out[port_[at]], of_subflow[i]);
  }
  return out;
}

std::vector<double> Crossings::sums(std::span<const double> of_port) const { return by_subflow(of_port, sum); }

std::vector<double> Crossings::least(std::span<const double> of_port) const { return by_subflow(of_port, smaller); }

std::vector<double> Crossings::load(std::span<const double> of_subflow, std::size_t ports) const {
  return by_port(of_subflow, std::vector<double>(ports), sum);
}

std::vector<double> Crossings::least_at_ports(std::span<const double> of_subflow, std::size_t ports) const {
  return by_port(of_subflow, std::vector<double>(ports, std::numeric_limits<double>::infinity()), smaller);
}

}  // namespace fabric
