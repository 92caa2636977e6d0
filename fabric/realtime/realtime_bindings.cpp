#include "bindings.hpp"

#include <cstdio>

#include "realtime/fabric_clock.hpp"
#include "realtime/idle_probe.hpp"
#include "realtime/realtime_fabric.hpp"
#include "realtime/stall_maker.hpp"

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

auto to_counts(const std::array<std::uint64_t, Histogram::kBins>& bins) {
  return to_array(std::vector<std::uint64_t>(bins.begin(), bins.end()));
}

std::int64_t to_ns(double us) { return static_cast<std::int64_t>(us * 1e3); }

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
  out["vlan_tagged"] = s.health.vlan_tagged;
  out["no_such_host"] = s.health.no_such_host;
  out["oversized"] = s.health.oversized;
  out["no_memory"] = s.health.no_memory;
  out["cpu_s"] = static_cast<double>(s.health.cpu_ns) / 1e9;
  out["sampling_s"] = static_cast<double>(s.health.sampling_ns) / 1e9;
  add_port_counters(out, s.ports, s.queued_pkts);
  out["lateness"] = to_counts(s.lateness);
  out["pauses"] = s.pauses.count;
  out["paused_s"] = static_cast<double>(s.pauses.total_ns) / 1e9;
  out["longest_pause_s"] = static_cast<double>(s.pauses.longest_ns) / 1e9;
  out["unheld_s"] = static_cast<double>(s.unheld_ns) / 1e9;
  nb::list wakeups;
  for (const Wakeups& w : s.wakeups) wakeups.append(nb::make_tuple(w.cpu, w.longest_ns, to_counts(w.lateness)));
  out["wakeups"] = wakeups;
  return out;
}

Time from_ms(double ms) { return static_cast<Time>(ms * kMillisecond); }

void bind_stall_maker(nb::module_& module) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<StallMaker>(module, "StallMaker")
      .def(
          "__init__",
          [](StallMaker* self, const std::vector<int>& cpus, double every_ms, double least_ms, double most_ms,
             std::uint32_t seed, bool together, double lasts_s) {
            new (self) StallMaker({.cpus = cpus,
                                   .law = {.every = from_ms(every_ms), .least = from_ms(least_ms), .most = from_ms(most_ms)},
                                   .seed = seed,
                                   .together = together,
                                   .lasts = from_ms(1000 * lasts_s)});
          },
          "cpus"_a, nb::kw_only(), "every_ms"_a, "least_ms"_a, "most_ms"_a, "seed"_a, "together"_a = true,
          "lasts_s"_a = 3600.0)
      .def("start", &StallMaker::start, Release())
      .def("stop", &StallMaker::stop, Release())
      .def_prop_ro("stalls", [](const StallMaker& self) { return self.counts().stalls; })
      .def_prop_ro("stalled_ns", [](const StallMaker& self) { return self.counts().stalled_ns; });
}

}  // namespace

void bind_realtime(nb::module_& module) {
  module.def("rank_of_stamp", &rank_of_stamp, "stamp"_a);
  std::vector<std::uint64_t> edges;
  for (std::size_t i = 0; i < Histogram::kBins; ++i) edges.push_back(Histogram::lower_edge(i));
  module.attr("LATENESS_EDGES_NS") = to_array(std::move(edges));

  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<FabricClock>(module, "FabricClock")
      .def(nb::init<>())
      .def("start", &FabricClock::start, "real_ns"_a)
      .def("at", [](const FabricClock& self, std::int64_t ns) { return self.at(ns) / kNanosecond; }, "real_ns"_a)
      .def("of_past", [](const FabricClock& self, std::int64_t ns) { return self.of_past(ns) / kNanosecond; }, "real_ns"_a)
      .def("real_ns", [](const FabricClock& self, std::int64_t ns) { return self.real_ns(ns * kNanosecond); }, "fabric_ns"_a)
      .def("pause", &FabricClock::pause, "from_ns"_a, "to_ns"_a)
      .def("lived", &FabricClock::lived, "real_ns"_a)
      .def("restart_longest", &FabricClock::restart_longest)
      .def("pauses", [](const FabricClock& self) {
        const FabricClock::Pauses& pauses = self.pauses();
        return std::tuple(pauses.count, pauses.total_ns, pauses.longest_ns);
      });
  nb::class_<IdleProbe>(module, "IdleProbe")
      .def(
          "__init__",
          [](IdleProbe* self, const std::vector<int>& cpus, double period_us, int priority) {
            new (self) IdleProbe(cpus, {to_ns(period_us), priority});
          },
          "cpus"_a, nb::kw_only(), "period_us"_a = 1000.0, "priority"_a = 0)
      .def("start", &IdleProbe::start, Release())
      .def("stop", &IdleProbe::stop, Release())
      .def("histogram", [](const IdleProbe& self, std::size_t i) { return to_counts(self.histogram(i)); }, "i"_a)
      .def("longest_ns", &IdleProbe::longest_ns, "i"_a)
      .def_prop_ro("is_real_time", &IdleProbe::is_real_time);
  nb::class_<RealtimeFabric>(module, "RealtimeFabric")
      .def(
          "__init__",
          [](RealtimeFabric* self, const NetworkPlan& plan, const std::vector<int>& ifindexes,
             const std::vector<std::string>& macs, double quantum_us, int cpu, int priority, double sample_ms,
             double tolerance_us, double hold_us, double idle_hold_us, const std::vector<int>& probed_cpus, int probe_priority,
             double probe_us, bool virtual_time) {
            RealtimeOptions options;
            options.quantum = static_cast<Time>(quantum_us * kMicrosecond);
            options.cpu = cpu;
            options.priority = priority;
            options.sample_interval = static_cast<Time>(sample_ms * kMillisecond);
            options.tolerance = static_cast<Time>(tolerance_us * kMicrosecond);
            options.hold = static_cast<Time>(hold_us * kMicrosecond);
            options.idle_hold = static_cast<Time>(idle_hold_us * kMicrosecond);
            options.probed_cpus = probed_cpus;
            options.probe = {to_ns(probe_us), probe_priority};
            options.virtual_time = virtual_time;
            new (self) RealtimeFabric(network_config(plan), host_ends(ifindexes, macs), options);
          },
          "plan"_a, "ifindexes"_a, "macs"_a, nb::kw_only(), "quantum_us"_a = 100.0, "cpu"_a = -1,
          "priority"_a = 0, "sample_ms"_a = 0.0, "tolerance_us"_a = 0.0, "hold_us"_a = 1000.0, "idle_hold_us"_a = 0.0,
          "probed_cpus"_a = std::vector<int>{}, "probe_priority"_a = 0, "probe_us"_a = 1000.0,
          "virtual_time"_a = false)
      .def("start", &RealtimeFabric::start, Release())
      .def("stop", &RealtimeFabric::stop, Release())
      .def("restart_maxima", &RealtimeFabric::restart_maxima, Release())
      .def("set_port_up", &RealtimeFabric::set_port_up, "port"_a, "up"_a, Release())
      .def("set_port_rate", &RealtimeFabric::set_port_rate, "port"_a, "rate_bps"_a, Release())
      .def(
          "reroute",
          [](RealtimeFabric& self, const NetworkPlan& plan) {
            ForwardingTable table = table_of(plan);
            const nb::gil_scoped_release release;
            self.reroute(std::move(table));
          },
          "plan"_a)
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
           },
           nb::sig("def snapshot(self) -> fabric.readings.Snapshot"))
      .def("deadlocked", &RealtimeFabric::deadlocked, nb::call_guard<nb::gil_scoped_release>())
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
        return std::pair(to_array(std::move(seconds)), to_array(std::move(lengths)));
      });
  bind_stall_maker(module);
}

}  // namespace fabric
