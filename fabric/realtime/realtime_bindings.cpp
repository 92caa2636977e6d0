#include "bindings.hpp"

#include <cstdio>

#include "realtime/realtime_fabric.hpp"

namespace fabric {

namespace {

std::vector<HostEnd> host_ends(const std::vector<int>& ifindexes, const std::vector<std::string>& macs) {
  if (ifindexes.size() != macs.size()) throw std::invalid_argument("one MAC address a veth end");
  std::vector<HostEnd> ends(ifindexes.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    ends[i].ifindex = ifindexes[i];
    const bool ok = std::sscanf(macs[i].c_str(), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &ends[i].mac[0], &ends[i].mac[1],
                                &ends[i].mac[2], &ends[i].mac[3], &ends[i].mac[4], &ends[i].mac[5]) == 6;
    if (!ok) throw std::invalid_argument("not a MAC address: " + macs[i]);
  }
  return ends;
}

nb::dict to_dict(const Snapshot& s) {
  nb::dict out;
  out["now_s"] = static_cast<double>(s.now) / static_cast<double>(kSecond);
  out["injected"] = s.totals.injected;
  out["delivered"] = s.totals.delivered;
  out["dropped"] = s.totals.dropped;
  out["lost"] = s.totals.lost;
  out["hops"] = s.totals.hops;
  out["in_flight"] = s.in_flight;
  out["ring_drops"] = s.health.ring_drops;
  out["send_refused"] = s.health.send_refused;
  out["not_ipv4"] = s.health.not_ipv4;
  out["no_such_host"] = s.health.no_such_host;
  out["oversized"] = s.health.oversized;
  out["no_memory"] = s.health.no_memory;
  out["cpu_s"] = static_cast<double>(s.health.cpu_ns) / 1e9;
  out["sampling_s"] = static_cast<double>(s.health.sampling_ns) / 1e9;
  add_port_counters(out, s.ports, s.queued_pkts);
  out["lateness"] = to_array(std::vector<std::uint64_t>(s.lateness.begin(), s.lateness.end()));
  return out;
}

}  // namespace

void bind_realtime(nb::module_& module) {
  std::vector<std::uint64_t> edges;
  for (std::size_t i = 0; i < Histogram::kBins; ++i) edges.push_back(Histogram::lower_edge(i));
  module.attr("LATENESS_EDGES_NS") = to_array(std::move(edges));

  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<RealtimeFabric>(module, "RealtimeFabric")
      .def(
          "__init__",
          [](RealtimeFabric* self, const nb::object& plan, const std::vector<int>& ifindexes,
             const std::vector<std::string>& macs, double quantum_us, int cpu, int priority, double sample_ms) {
            RealtimeOptions options;
            options.quantum = static_cast<Time>(quantum_us * kMicrosecond);
            options.cpu = cpu;
            options.priority = priority;
            options.sample_interval = static_cast<Time>(sample_ms * kMillisecond);
            new (self) RealtimeFabric(network_config(plan), host_ends(ifindexes, macs), options);
          },
          "plan"_a, "ifindexes"_a, "macs"_a, nb::kw_only(), "quantum_us"_a = 100.0, "cpu"_a = -1,
          "priority"_a = 0, "sample_ms"_a = 0.0)
      .def("start", &RealtimeFabric::start, Release())
      .def("stop", &RealtimeFabric::stop, Release())
      .def("restart_max_queues", &RealtimeFabric::restart_max_queues, Release())
      .def("set_port_up", &RealtimeFabric::set_port_up, "port"_a, "up"_a, Release())
      .def("set_port_rate", &RealtimeFabric::set_port_rate, "port"_a, "rate_bps"_a, Release())
      .def(
          "set_path",
          [](RealtimeFabric& self, const FiveTupleNumbers& flow, const std::vector<PortId>& ports) {
            const Path path = path_along(ports);
            const nb::gil_scoped_release release;
            self.set_path(five_tuple(flow), path);
          },
          "flow"_a, "ports"_a)
      .def(
          "clear_path",
          [](RealtimeFabric& self, const FiveTupleNumbers& flow) {
            const nb::gil_scoped_release release;
            self.clear_path(five_tuple(flow));
          },
          "flow"_a)
      .def(
          "sample_every",
          [](RealtimeFabric& self, double interval_ms) {
            const nb::gil_scoped_release release;
            self.sample_every(static_cast<Time>(interval_ms * kMillisecond));
          },
          "interval_ms"_a)
      .def("snapshot",
           [](RealtimeFabric& self) {
             Snapshot snapshot;
             {
               const nb::gil_scoped_release release;
               snapshot = self.snapshot();
             }
             return to_dict(snapshot);
           })
      .def("take_samples", [](RealtimeFabric& self) {
        std::vector<double> seconds;
        std::vector<std::uint32_t> lengths;  // times x ports, row-major
        {
          const nb::gil_scoped_release release;
          const auto samples = self.take_samples();
          if (!samples.empty()) lengths.reserve(samples.size() * samples.front().lengths.size());
          for (const QueueSample& sample : samples) {
            seconds.push_back(static_cast<double>(sample.when) / static_cast<double>(kSecond));
            lengths.insert(lengths.end(), sample.lengths.begin(), sample.lengths.end());
          }
        }
        return nb::make_tuple(to_array(std::move(seconds)), to_array(std::move(lengths)));
      });
}

}  // namespace fabric
