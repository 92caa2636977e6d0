#include "bindings.hpp"
#include "flow_level/crossings.hpp"
#include "flow_level/srpt.hpp"
#include "simulation/simulation.hpp"

namespace fabric {

namespace {

// Arrival and work in ps, numbers of the source and of the destination.
using FluidFlowTuple = std::tuple<Time, Time, std::uint32_t, std::uint32_t>;

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span_of(const Column<T>& column) {
  return {column.data(), column.size()};
}

// What all subflows' data crosses, and their acknowledgements.
std::pair<Crossings, Crossings> crossings_of(const Simulation& simulation) {
  std::pair<Crossings, Crossings> out;
  for (std::uint32_t i = 0; i < simulation.transport().subflows(); ++i) {
    const SubflowRoute route = simulation.route(i);
    out.first.add(route.forward.span());
    out.second.add(route.back.span());
  }
  return out;
}

void bind_crossings(nb::module_& module) {
  nb::class_<Crossings>(module, "Crossings")
      .def("__init__",
           [](Crossings* self, const std::vector<std::vector<PortId>>& paths) {
             Crossings all;
             for (const std::vector<PortId>& path : paths) all.add(path);
             new (self) Crossings(std::move(all));
           },
           "paths"_a)
      .def("__len__", &Crossings::subflows)
      .def("path",
           [](const Crossings& self, std::size_t subflow) {
             const auto path = self.path(subflow);
             return std::vector<PortId>(path.begin(), path.end());
           },
           "subflow"_a)
      .def("only", [](const Crossings& self, const Column<bool>& subflows) { return self.only(span_of(subflows)); },
           "subflows"_a)
      .def("sums", [](const Crossings& self, const Column<double>& of) { return to_array(self.sums(span_of(of))); },
           "of_port"_a)
      .def("least", [](const Crossings& self, const Column<double>& of) { return to_array(self.least(span_of(of))); },
           "of_port"_a)
      .def("load",
           [](const Crossings& self, const Column<double>& of, std::size_t ports) {
             return to_array(self.load(span_of(of), ports));
           },
           "of_subflow"_a, "ports"_a)
      .def("least_at_ports",
           [](const Crossings& self, const Column<double>& of, std::size_t ports) {
             return to_array(self.least_at_ports(span_of(of), ports));
           },
           "of_subflow"_a, "ports"_a);
  module.def("crossings", crossings_of, "simulation"_a);
}

}  // namespace

void bind_flow_level(nb::module_& module) {
  bind_crossings(module);
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
