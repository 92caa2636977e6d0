#include "bindings.hpp"
#include "flow_level/srpt.hpp"

namespace fabric {

namespace {

// Arrival and work in ps, numbers of the source and of the destination.
using FluidFlowTuple = std::tuple<Time, Time, std::uint32_t, std::uint32_t>;

}  // namespace

void bind_flow_level(nb::module_& module) {
  module.def(
      "srpt_ends",
      [](const std::vector<FluidFlowTuple>& flows, std::uint32_t hosts, Time limit) {
        std::vector<FluidFlow> wanted;
        wanted.reserve(flows.size());
        for (const auto& [arrival, work, source, destination] : flows) {
          wanted.push_back({arrival, work, source, destination});
        }
        return to_array(srpt_ends(wanted, hosts, limit));
      },
      "flows"_a, "hosts"_a, "limit_ps"_a);
}

}  // namespace fabric
