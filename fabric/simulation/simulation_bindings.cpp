#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "bindings.hpp"
#include "simulation/ccp/datapath.hpp"
#include "simulation/congestion/registry.hpp"
#include "simulation/schedulers.hpp"
#include "simulation/simulation.hpp"

namespace fabric {

namespace {

// Source NIC, destination NIC, hash of the five-tuple, hash of its reverse.
using SubflowTuple = std::tuple<NicId, NicId, std::uint32_t, std::uint32_t>;

SubflowConfig subflow_of(const SubflowTuple& subflow) {
  const auto& [source, destination, hash, back_hash] = subflow;
  return {source, destination, hash, back_hash};
}

// An event of an agent: kind, subflow, time in us, number of the program, window in bytes, fields; the field of a flow
// that begins is a full segment, in bytes.
using AgentEventTuple =
    nb::typed<nb::tuple, int, std::uint32_t, Time, std::uint32_t, std::uint64_t, nb::typed<nb::tuple, int, nb::ellipsis>>;
using AnswerOfAgent = nb::typed<nb::callable, std::vector<AgentCommand>(nb::typed<nb::list, AgentEventTuple>)>;
using ControlTuple = std::pair<std::uint32_t, std::uint64_t>;

nb::tuple fields_of(const AgentEvent& event, const std::vector<std::uint32_t>& counts) {
  if (event.kind == AgentEventKind::created) return nb::make_tuple(event.mss);
  if (event.kind == AgentEventKind::closed) return nb::make_tuple();
  const std::uint32_t count = counts.at(event.program);
  const auto out = nb::steal<nb::tuple>(PyTuple_New(count));
  if (!out.is_valid()) nb::raise_python_error();
  for (std::uint32_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(out.ptr(), i, PyLong_FromUnsignedLongLong(event.fields.at(i)));
  }
  return out;
}

std::vector<AgentCommand> commands_of(const nb::callable& agent, std::span<const AgentEvent> batch,
                                      const std::vector<std::uint32_t>& fields) {
  const nb::gil_scoped_acquire locked;
  nb::list events;
  for (const AgentEvent& each : batch) {
    events.append(nb::make_tuple(static_cast<int>(each.kind), each.subflow, each.at / kMicrosecond, each.program,
                                 each.window_bytes, fields_of(each, fields)));
  }
  auto out = nb::cast<std::vector<AgentCommand>>(agent(events));
  for (const AgentCommand& command : out) {
    if (command.program && *command.program >= fields.size()) {
      throw std::invalid_argument("a command names a program that is not installed");
    }
  }
  return out;
}

ccp_program program_of(const nb::bytes& packed) {
  ccp_program out{};
  if (packed.size() != sizeof out) throw std::invalid_argument("a program of the datapath has another size");
  std::memcpy(&out, packed.c_str(), sizeof out);
  const bool fits = out.fields <= CCP_FIELDS && out.initial <= out.reset && out.reset <= out.end &&
                    out.end <= CCP_INSTRUCTIONS;
  if (!fits) throw std::invalid_argument("a program of the datapath is damaged");
  return out;
}

AgentConfig agent_of(const std::vector<nb::bytes>& programs, Time delay, Time jitter, Time report,
                     std::uint32_t seed, const nb::callable& answer) {
  if (delay < 0 || jitter < 0 || report < 0) throw std::invalid_argument("an agent's times are not negative");
  if (programs.empty() || programs.size() > CCP_PROGRAMS) throw std::invalid_argument("an agent has 1 to 16 programs");
  AgentConfig out{.programs = {}, .delay = delay, .jitter = jitter,
                  .report_us = static_cast<std::uint64_t>(report / kMicrosecond), .seed = seed};
  std::vector<std::uint32_t> fields;
  for (const nb::bytes& packed : programs) fields.push_back(out.programs.emplace_back(program_of(packed)).fields);
  out.agent = [called = answer, fields](std::span<const AgentEvent> batch) { return commands_of(called, batch, fields); };
  return out;
}

nb::dict agent_readings(const Simulation& self) {
  const Agents* const agents = self.agents();
  const AgentCounters counters = agents ? agents->counters : AgentCounters{};
  nb::dict out;
  out["acknowledgements"] = counters.acknowledgements;
  out["reports"] = counters.reports;
  out["commands"] = counters.commands;
  out["errors"] = agents ? agents->unit.flow.errors : 0;
  out["fallbacks"] = agents ? agents->unit.flow.fallbacks : 0;
  return out;
}

template <auto... Members>
void def_fields(nb::class_<TransportOptions>& bound) {
  static_assert(sizeof...(Members) + 2 == field_count<TransportOptions>(), "all but transport and scheduler, which are chosen by name");
  (bound.def_rw(member_name<Members>().data(), Members), ...);
}

void bind_options(nb::module_& module) {
  nb::enum_<Acks>(module, "Acks").value("routed", Acks::routed).value("at_once", Acks::at_once);
  nb::enum_<RecoveryRules>(module, "RecoveryRules").value("rfc", RecoveryRules::rfc).value("linux", RecoveryRules::linux_kernel);
  nb::enum_<Connections>(module, "Connections").value("new", Connections::fresh).value("persistent", Connections::persistent);
  nb::enum_<Rank>(module, "Rank").value("remaining", Rank::remaining).value("sent", Rank::sent);
  using Options = TransportOptions;
  nb::class_<Options> bound(module, "TransportOptions");
  bound.def(nb::init<>());
  def_fields<
      &Options::transport_settings, &Options::payload_bytes, &Options::header_bytes, &Options::ack_bytes, &Options::mptcp_bytes,
      &Options::mptcp_ack_bytes, &Options::initial_window, &Options::ssthresh, &Options::initial_rto_ps,
      &Options::min_rto_ps, &Options::max_rto_ps, &Options::first_rto_ps, &Options::timer_scan_ps,
      &Options::delayed_ack_ps, &Options::processing_frames, &Options::processing_seed, &Options::fixed_rto,
      &Options::probe_after, &Options::max_window, &Options::connections, &Options::rank, &Options::smallest_first,
      &Options::sack, &Options::ecn, &Options::acks, &Options::reinject, &Options::ack_gaps, &Options::recovery,
      &Options::handshake, &Options::dup_threshold, &Options::join_after_ps, &Options::join_after_bytes,
      &Options::on_demand, &Options::nic_queue_pkts, &Options::send_buffer, &Options::receive_buffer,
      &Options::subflow_buffer>(bound);
  bound.def_prop_rw(
      "transport", [](const Options& self) { return self.transport->name; },
      [](Options& self, std::string_view name) { self.transport = &TransportKind::named(name); });
  bound.def_prop_rw(
      "scheduler", [](const Options& self) { return self.scheduler->name; },
      [](Options& self, std::string_view name) { self.scheduler = &scheduler(name); });
}

auto queue_lengths(Simulation& self) {
  return column_of(self.network().ports(), &Port::queued_pkts);
}

// For each subflow, the time a packet of `size_bytes` would take on the path, and on the path and back, if it were sent
// now and all queues stood still, in ps.
auto path_delays(Simulation& self, std::uint32_t size_bytes, Time now) {
  std::vector<Time> out;
  std::vector<Time> round_trip;
  const auto of = [&](const Path& path) {
    Time sum = 0;
    for (const PortId port : path.span()) sum += self.network().ports()[port].delay_of(size_bytes, now);
    return sum;
  };
  for (std::uint32_t i = 0; i < self.transport().subflows(); ++i) {
    const SubflowRoute route = self.route(i);
    out.push_back(of(route.forward));
    round_trip.push_back(out.back() + of(route.back));
  }
  return std::pair(to_array(std::move(out)), to_array(std::move(round_trip)));
}

nb::dict flow_readings(const Simulation& self) {
  std::vector<std::uint64_t> delivered;
  std::vector<Time> started;
  std::vector<Time> completed;
  for (std::uint32_t i = 0; i < self.transport().flows(); ++i) {
    const FlowProgress flow = self.transport().flow(i);
    delivered.push_back(flow.delivered_bytes);
    started.push_back(flow.started);
    completed.push_back(flow.completed);
  }
  for (const DatagramSource& source : self.datagrams()) {
    delivered.push_back(std::uint64_t{source.received} * self.options().payload_bytes);
    started.push_back(source.emitted != 0 ? source.start : kNever);
    completed.push_back(kNever);
  }
  nb::dict out;
  out["delivered_bytes"] = to_array(std::move(delivered));
  out["started_ps"] = to_array(std::move(started));
  out["completed_ps"] = to_array(std::move(completed));
  return out;
}

std::vector<std::uint32_t> numbers_to(std::size_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

nb::dict datagram_readings(const Simulation& self) {
  const auto& sources = self.datagrams();
  nb::dict out;
  out["sent_pkts"] = column_of(sources, [](const DatagramSource& source) { return source.emitted - source.refused; });
  out["refused_pkts"] = column_of(sources, &DatagramSource::refused);
  out["lost_pkts"] = column_of(numbers_to(sources.size()), [&](std::uint32_t i) { return self.lost_datagrams(i); });
  out["received_pkts"] = column_of(sources, &DatagramSource::received);
  return out;
}

nb::dict noise_readings(const Simulation& self) {
  const auto& noise = self.noise();
  const auto bins = noise ? noise->lateness().bins() : Histogram().bins();
  nb::dict out;
  out["lateness"] = to_array(std::vector<std::uint64_t>(bins.begin(), bins.end()));
  out["stalled_ps"] = noise ? noise->stalled(self.now()) : Time{0};
  return out;
}

nb::dict subflow_readings(const Simulation& self) {
  std::vector<SubflowReading> of;
  for (std::uint32_t i = 0; i < self.transport().subflows(); ++i) of.push_back(self.transport().subflow(i, self.now()));
  nb::dict out;
  out["window_pkts"] = column_of(of, &SubflowReading::window_pkts);
  out["srtt_ps"] = column_of(of, &SubflowReading::srtt);
  out["rttvar_ps"] = column_of(of, &SubflowReading::rtt_variance);
  out["retransmits"] = column_of(of, &SubflowReading::retransmits);
  out["timeouts"] = column_of(of, &SubflowReading::timeouts);
  out["acked_pkts"] = column_of(of, &SubflowReading::acked_pkts);
  out["acked_bytes"] = column_of(of, &SubflowReading::acked_bytes);
  out["unacked_pkts"] = column_of(of, &SubflowReading::unacked_pkts);
  out["notsent_bytes"] = column_of(of, &SubflowReading::unsent_bytes);
  out["busy_ps"] = column_of(of, &SubflowReading::busy);
  out["rwnd_limited_ps"] = column_of(of, &SubflowReading::rwnd_limited);
  out["established"] = column_of(of, [](const SubflowReading& each) { return std::uint8_t{each.established}; });
  return out;
}

std::vector<PortId> listed(const Path& path) { return {path.span().begin(), path.span().end()}; }

// Shortest paths there and back.
std::pair<std::uint32_t, std::uint32_t> path_count(Simulation& self, std::uint32_t number) {
  const SubflowRoute subflow = self.route(number);
  const Router& router = self.network().router();
  return {router.paths(subflow.source, subflow.destination), router.paths(subflow.destination, subflow.source)};
}

void bind_configuration(nb::module_& module) {
  nb::class_<FlowConfig>(module, "Flow")
      .def(
          "__init__",
          [](FlowConfig* self, const std::vector<SubflowTuple>& subflows, const std::string& cc, std::uint64_t size_bytes,
             Time start, std::optional<std::uint32_t> after, std::uint8_t dscp) {
            FlowConfig flow{size_bytes, start, after.value_or(kNone), &congestion_control(cc), {}, dscp};
            for (const SubflowTuple& each : subflows) flow.subflows.push_back(subflow_of(each));
            new (self) FlowConfig(std::move(flow));
          },
          nb::kw_only(), "subflows"_a, "cc"_a, "size_bytes"_a = 0, "start_ps"_a = 0, "after"_a = nb::none(), "dscp"_a = 0);
  nb::class_<DatagramConfig>(module, "Datagrams")
      .def(
          "__init__",
          [](DatagramConfig* self, std::int64_t rate_bps, const SubflowTuple& path, std::uint32_t packets, Time start,
             std::uint8_t dscp) { new (self) DatagramConfig{rate_bps, packets, start, subflow_of(path), dscp}; },
          nb::kw_only(), "rate_bps"_a, "path"_a, "packets"_a = 0, "start_ps"_a = 0, "dscp"_a = 0)
      .def_rw("packets", &DatagramConfig::packets);
  nb::class_<NoiseConfig>(module, "Noise")
      .def(
          "__init__",
          [](NoiseConfig* self, Time every, Time least, Time most, std::uint32_t seed, bool stalls_timers, bool elastic) {
            new (self) NoiseConfig{{.every = every, .least = least, .most = most}, seed, stalls_timers, elastic};
          },
          nb::kw_only(), "every_ps"_a, "least_ps"_a, "most_ps"_a, "seed"_a, "stalls_timers"_a, "elastic"_a);
  nb::class_<AgentConfig>(module, "Agent")
      .def(
          "__init__",
          [](AgentConfig* self, const std::vector<nb::bytes>& programs, Time delay, Time jitter, Time report,
             std::uint32_t seed, const AnswerOfAgent& answer) {
            new (self) AgentConfig(agent_of(programs, delay, jitter, report, seed, answer));
          },
          nb::kw_only(), "programs"_a, "delay_ps"_a, "jitter_ps"_a, "report_ps"_a, "seed"_a, "answer"_a);
  nb::class_<AgentCommand>(module, "AgentCommand")
      .def(
          "__init__",
          [](AgentCommand* self, std::uint32_t event, std::uint32_t subflow, std::optional<std::uint64_t> window_bytes,
             std::optional<std::uint64_t> rate_bytes_per_s, std::optional<std::uint32_t> program,
             std::vector<ControlTuple> controls, bool fall_back) {
            new (self) AgentCommand{event, subflow, window_bytes, rate_bytes_per_s, program, std::move(controls), fall_back};
          },
          nb::kw_only(), "event"_a, "subflow"_a, "window_bytes"_a.none(), "rate_bytes_per_s"_a.none(), "program"_a.none(),
          "controls"_a, "fall_back"_a);
}

}  // namespace

void bind_simulation(nb::module_& module) {
  module.def("schedulers", [] {
    std::vector<std::string> names;
    for (const Scheduler* known : kSchedulers) names.emplace_back(known->name);
    return names;
  });
#ifdef __clang__
  module.attr("COMPILER") = __VERSION__;
#else
  module.attr("COMPILER") = "g++ " __VERSION__;
#endif
  nb::class_<TransportKind>(module, "TransportKind")
      .def_ro("name", &TransportKind::name)
      .def_prop_ro("settings", [](const TransportKind& self) {
        return std::vector<QueueSetting>(self.settings.begin(), self.settings.end());
      })
      .def_ro("trims", &TransportKind::trims)
      .def_ro("sprays", &TransportKind::sprays);
  module.def("transport_kinds", [] {
    return TransportKind::all();
  }, nb::rv_policy::reference);
  bind_options(module);
  bind_configuration(module);
  nb::class_<Simulation>(module, "Simulation")
      .def(
          "__init__",
          [](Simulation* self, const NetworkPlan& plan, const TransportOptions& options, const std::vector<FlowConfig>& flows,
             const std::vector<DatagramConfig>& datagrams, const std::optional<NoiseConfig>& noise,
             const std::optional<AgentConfig>& agent, std::uint32_t threads) {
            new (self) Simulation(network_config(plan), options, flows, datagrams, noise, agent, threads);
          },
          "plan"_a, "options"_a, "flows"_a, "datagrams"_a = std::vector<DatagramConfig>{}, "noise"_a = nb::none(),
          "agent"_a = nb::none(), "threads"_a = 1)
      .def("run_until", &Simulation::run_until, "limit_ps"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("set_port_up", &Simulation::set_port_up,
           "port"_a, "up"_a, "now_ps"_a)
      .def("set_port_rate", &Simulation::set_port_rate, "port"_a, "rate_bps"_a)
      .def("reroute", [](Simulation& self, const NetworkPlan& plan) { self.reroute(table_of(plan)); }, "plan"_a)
      .def("restart_max_queues", &Simulation::restart_max_queues)
      .def("hops", [](Simulation& self) { return self.totals().hops; })
      .def("ports", [](Simulation& self) { return network_readings(self.network(), self.totals()); }, nb::sig("def ports(self) -> fabric.readings.SimulatedCounters"))
      .def("deadlocked", [](Simulation& self) { return self.network().deadlocked(); })
      .def("queues", queue_lengths)
      .def("path_delays", path_delays, "size_bytes"_a, "now_ps"_a)
      .def("flows", flow_readings, nb::sig("def flows(self) -> fabric.readings.FlowReadings"))
      .def("datagrams", datagram_readings, nb::sig("def datagrams(self) -> fabric.readings.DatagramReadings"))
      .def("descriptors_in_use", [](Simulation& self) { return self.descriptors_in_use(); })
      .def("noise", noise_readings, nb::sig("def noise(self) -> fabric.readings.NoiseReadings"))
      .def("agent", agent_readings, nb::sig("def agent(self) -> fabric.readings.AgentReadings"))
      .def("subflows", subflow_readings, nb::sig("def subflows(self) -> fabric.readings.SubflowReadings"))
      .def("path", [](const Simulation& self, std::uint32_t subflow) { return listed(self.route(subflow).forward); },
           "subflow"_a)
      .def("back_path", [](const Simulation& self, std::uint32_t subflow) { return listed(self.route(subflow).back); },
           "subflow"_a)
      .def("path_count", path_count, "subflow"_a)
      .def("set_path",
           [](Simulation& self, std::uint32_t subflow, const std::vector<PortId>& there, const std::vector<PortId>& back) {
             self.set_path(subflow, path_along(there), path_along(back));
           },
           "subflow"_a, "there"_a, "back"_a)
      .def("open_subflow", &Simulation::open_subflow, "subflow"_a)
      .def("close_subflow", &Simulation::close_subflow, "subflow"_a)
      .def("set_path_ranks", &Simulation::set_path_ranks, "subflow"_a, "there"_a, "back"_a);
}

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
        const std::vector<PathState> states = path_states(paths, i);
        const CongestionControl& control = congestion_control(name);
        return control.increase == nullptr ? 0.0 : control.increase(states, i);
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
