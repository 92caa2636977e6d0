#include <string>

#include "bindings.hpp"
#include "simulation/congestion/registry.hpp"

namespace fabric {

namespace {

// Window in packets, RTT in seconds, packets since the last loss and between the last two.
using PathTuple = std::tuple<double, double, double, double>;

std::vector<PathState> path_states(const std::vector<PathTuple>& paths, std::size_t i) {
  if (i >= paths.size()) throw std::out_of_range("there is no path of that number");
  std::vector<PathState> out;
  for (const auto& [window, rtt_s, since, between] : paths) out.push_back({window, rtt_s, since, between});
  return out;
}

}  // namespace

void bind_congestion(nb::module_& module) {
  module.def("congestion_controls", [] {
    std::vector<std::string> names;
    for (const CongestionControl* known : kCongestionControls) names.emplace_back(known->name);
    return names;
  });
  module.def(
      "window_increase",
      [](const std::string& name, const std::vector<PathTuple>& paths, std::size_t i) {
        return congestion_control(name).increase(path_states(paths, i), i);
      },
      "name"_a, "paths"_a, "i"_a);
  module.def(
      "window_after_loss",
      [](const std::string& name, const std::vector<PathTuple>& paths, std::size_t i) {
        return congestion_control(name).after_loss(path_states(paths, i), i);
      },
      "name"_a, "paths"_a, "i"_a);
  nb::class_<CubicState>(module, "CubicState")
      .def(nb::init<>())
      .def("grown", cubic::grown, "window"_a, "fresh"_a, "now_s"_a, "rtt_s"_a)
      .def("reduced", cubic::reduced, "window"_a)
      .def("timed_out", cubic::timed_out);
  module.def("dctcp_alpha", dctcp_alpha, "alpha"_a, "share"_a);
  module.def("dctcp_after_marks", dctcp_after_marks, "window"_a, "alpha"_a);
}

}  // namespace fabric
