// The policies whose switches choose the next hop of every packet, and their parameters. To add one, add a file beside
// this one and a case in `balancer`.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/balancing/balancer.hpp"
#include "core/balancing/conga.hpp"
#include "core/balancing/drill.hpp"
#include "core/balancing/letflow.hpp"
#include "core/port.hpp"
#include "core/random.hpp"
#include "core/units.hpp"

namespace fabric {

// Numbers by the names that controllers/routing.py gives them.
class PolicyParameters {
 public:
  PolicyParameters() = default;
  explicit PolicyParameters(std::map<std::string, double> numbers) : numbers_(std::move(numbers)) {}

  // Throws std::invalid_argument if there is none, or if it is not whole or out of range.
  [[nodiscard]] std::int64_t whole(const std::string& name, std::int64_t least, std::int64_t most) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end()) throw std::invalid_argument("network plan: the routing policy needs " + name);
    const double number = found->second;
    if (number >= static_cast<double>(least) && number <= static_cast<double>(most) && std::floor(number) == number) {
      return static_cast<std::int64_t>(number);
    }
    throw std::invalid_argument("network plan: the routing policy's " + name + " is out of range");
  }
  [[nodiscard]] Time us(const std::string& name) const { return kMicrosecond * whole(name, 1, 1'000'000'000); }
  [[nodiscard]] std::size_t count(const std::string& name, std::int64_t least) const {
    return static_cast<std::size_t>(whole(name, least, 1'000'000));
  }

 private:
  std::map<std::string, double> numbers_;
};

// What a policy may know of the switch.
struct SwitchSetup {
  std::uint32_t leaf = kNone;    // its column of the forwarding table, if it has hosts
  std::size_t leaves = 0;        // columns
  std::vector<PortId> uplinks;   // its ports to other switches, ascending
  std::span<Port> ports;         // of the network
  Random random;
};

// nullptr for a policy whose switches choose by the flow's hash.
inline std::unique_ptr<Balancer> balancer(Policy policy, const PolicyParameters& parameters, const SwitchSetup& setup) {
  switch (policy) {
    case Policy::letflow:
      return std::make_unique<LetFlow>(parameters.us("gap_us"), setup.random);
    case Policy::drill:
      return std::make_unique<Drill>(parameters.count("d", 1), parameters.count("m", 0), setup.ports, setup.random);
    case Policy::conga:
      if (setup.uplinks.size() > Overlay::kNoPath) {
        throw std::invalid_argument("network plan: a leaf under CONGA has at most 255 uplinks");
      }
      return std::make_unique<Conga>(parameters.us("gap_us"), parameters.us("tau_us"), setup.leaf, setup.leaves,
                                     setup.uplinks, setup.ports, setup.random);
    default:
      return nullptr;
  }
}

}  // namespace fabric
