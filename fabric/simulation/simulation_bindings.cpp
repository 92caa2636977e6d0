#include <nanobind/stl/optional.h>

#include <cstring>
#include <optional>
#include <string>

#include "bindings.hpp"
#include "bindings.hpp"
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

// An event of an agent is (kind, subflow, time in us, number of the program, fields); the fields of a flow that begins
// are its window and a full segment, in bytes. A command is (position of its event, subflow, window in bytes or None,
// bytes per second or None, number of the program or None, ((control, value), ...), whether to fall back).
using ControlTuple = std::pair<std::uint32_t, std::uint64_t>;

nb::tuple fields_of(const AgentEvent& event, const std::vector<std::uint32_t>& counts) {
  if (event.kind == AgentEventKind::created) return nb::make_tuple(event.window_bytes, event.mss);
  if (event.kind == AgentEventKind::closed) return nb::make_tuple();
  const std::uint32_t count = counts.at(event.program);
  const auto out = nb::steal<nb::tuple>(PyTuple_New(count));
  if (!out.is_valid()) nb::raise_python_error();
  for (std::uint32_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(out.ptr(), i, PyLong_FromUnsignedLongLong(event.fields.at(i)));
  }
  return out;
}

template <class T>
std::optional<T> given(nb::handle value) {
  if (value.is_none()) return {};
  return nb::cast<T>(value);
}

AgentCommand command_of(nb::handle answer) {
  const auto parts = nb::cast<nb::tuple>(answer);
  if (parts.size() != 7) throw std::invalid_argument("a command of the agent has 7 parts");
  AgentCommand out{.event = nb::cast<std::uint32_t>(parts[0]),
                   .subflow = nb::cast<std::uint32_t>(parts[1]),
                   .window_bytes = given<std::uint64_t>(parts[2]),
                   .rate_bytes_per_s = given<std::uint64_t>(parts[3]),
                   .program = given<std::uint32_t>(parts[4]),
                   .controls = {},
                   .fall_back = nb::cast<bool>(parts[6])};
  for (const nb::handle each : nb::cast<nb::tuple>(parts[5])) out.controls.push_back(nb::cast<ControlTuple>(each));
  return out;
}

std::vector<AgentCommand> commands_of(const nb::callable& agent, std::span<const AgentEvent> batch,
                                      const std::vector<std::uint32_t>& fields) {
  const nb::gil_scoped_acquire locked;
  nb::list events;
  for (const AgentEvent& each : batch) {
    events.append(nb::make_tuple(static_cast<int>(each.kind), each.subflow, each.at / kMicrosecond, each.program,
                                 fields_of(each, fields)));
  }
  std::vector<AgentCommand> out;
  for (const nb::handle answer : nb::cast<nb::list>(agent(events))) {
    const AgentCommand& command = out.emplace_back(command_of(answer));
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

AgentConfig agent_of(const std::vector<nb::bytes>& programs, Time delay, Time jitter, std::uint64_t report_us,
                     std::uint32_t seed, const nb::callable& answer) {
  if (delay < 0 || jitter < 0) throw std::invalid_argument("an agent's delay and jitter are not negative");
  if (programs.empty() || programs.size() > CCP_PROGRAMS) throw std::invalid_argument("an agent has 1 to 16 programs");
  AgentConfig out{.programs = {}, .delay = delay, .jitter = jitter, .report_us = report_us, .seed = seed};
  std::vector<std::uint32_t> fields;
  for (const nb::bytes& packed : programs) fields.push_back(out.programs.emplace_back(program_of(packed)).fields);
  out.agent = [called = answer, fields](std::span<const AgentEvent> batch) { return commands_of(called, batch, fields); };
  return out;
}

nb::dict agent_readings(const Simulation& self) {
  const Agents* const agents = self.tcp().agents();
  const AgentCounters counters = agents ? agents->counters : AgentCounters{};
  nb::dict out;
  out["acknowledgements"] = counters.acknowledgements;
  out["reports"] = counters.reports;
  out["commands"] = counters.commands;
  out["errors"] = agents ? agents->unit.flow.errors : 0;
  out["fallbacks"] = agents ? agents->unit.flow.fallbacks : 0;
  return out;
}

// Every option must be there: a misspelt name is an error.
TransportOptions options_of(const nb::object& options) {
  TransportOptions out;
  const auto read = [&](const char* name, auto& field) {
    field = nb::cast<std::remove_reference_t<decltype(field)>>(options.attr(name));
  };
  read("payload_bytes", out.payload_bytes);
  read("header_bytes", out.header_bytes);
  read("ack_bytes", out.ack_bytes);
  read("mptcp_bytes", out.mptcp_bytes);
  read("mptcp_ack_bytes", out.mptcp_ack_bytes);
  read("ack_gaps", out.ack_gaps);
  read("initial_window", out.initial_window);
  read("initial_ssthresh", out.initial_ssthresh);
  read("initial_rto_ps", out.initial_rto);
  read("min_rto_ps", out.min_rto);
  read("max_rto_ps", out.max_rto);
  read("delayed_ack_ps", out.delayed_ack);
  read("sack", out.sack);
  read("ecn", out.ecn);
  read("ack_at_once", out.ack_at_once);
  read("reinject", out.reinject);
  read("dup_threshold", out.dup_threshold);
  read("nic_queue_pkts", out.nic_queue_pkts);
  read("send_buffer_pkts", out.send_buffer_pkts);
  read("receive_buffer_pkts", out.receive_buffer_pkts);
  read("processing_frames", out.processing_frames);
  read("processing_seed", out.processing_seed);
  read("fixed_rto", out.fixed_rto);
  read("probe_after", out.probe_after);
  read("max_window", out.max_window);
  read("persistent", out.persistent);
  read("smallest_first", out.smallest_first);
  out.rank = nb::cast<bool>(options.attr("rank_by_sent")) ? Rank::sent : Rank::remaining;
  read("linux_recovery", out.linux_recovery);
  read("first_rto_ps", out.first_rto);
  read("timer_scan_ps", out.timer_scan);
  read("handshake", out.handshake);
  read("subflow_buffer_pkts", out.subflow_buffer_pkts);
  read("adapts_to_reordering", out.adapts_to_reordering);
  read("join_after_ps", out.join_after);
  read("join_after_bytes", out.join_after_bytes);
  read("on_demand", out.on_demand);
  out.scheduler = &scheduler(nb::cast<std::string>(options.attr("scheduler")));
  if (!(out.processing_frames >= 0 && out.processing_frames <= 100)) {
    throw std::invalid_argument("hosts process a packet in 0 to 100 transmissions of a full one");
  }
  if (out.ack_bytes == 0 || out.payload_bytes == 0) throw std::invalid_argument("packets have at least one byte");
  return out;
}

nb::object queue_lengths(Simulation& self) {
  std::vector<std::uint32_t> queued;
  for (const Port& port : self.network().ports()) queued.push_back(port.queued_pkts());
  return to_array(std::move(queued));
}

// For each subflow, the time a packet of `size_bytes` would take on the path, and on the path and back, if it were sent
// now and all queues stood still, in ps.
nb::object path_delays(Simulation& self, std::uint32_t size_bytes, Time now) {
  std::vector<Time> out;
  std::vector<Time> round_trip;
  const auto of = [&](const Path& path) {
    Time sum = 0;
    for (const PortId port : path.span()) sum += self.network().ports()[port].delay_of(size_bytes, now);
    return sum;
  };
  for (const Subflow& subflow : self.tcp().subflows()) {
    out.push_back(of(subflow.forward));
    round_trip.push_back(out.back() + of(subflow.back));
  }
  return nb::make_tuple(to_array(std::move(out)), to_array(std::move(round_trip)));
}

nb::dict flow_readings(const Simulation& self) {
  std::vector<std::uint64_t> delivered;
  std::vector<Time> started;
  std::vector<Time> completed;
  for (const Connection& connection : self.tcp().connections()) {
    delivered.push_back(connection.delivered_bytes());
    started.push_back(connection.started);
    completed.push_back(connection.completed);
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

nb::dict datagram_readings(const Simulation& self) {
  std::vector<std::uint32_t> sent;
  std::vector<std::uint32_t> refused;
  std::vector<std::uint32_t> lost;
  std::vector<std::uint32_t> received;
  for (const DatagramSource& source : self.datagrams()) {
    sent.push_back(source.emitted - source.refused);
    refused.push_back(source.refused);
    lost.push_back(self.lost_datagrams(lost.size()));
    received.push_back(source.received);
  }
  nb::dict out;
  out["sent_pkts"] = to_array(std::move(sent));
  out["refused_pkts"] = to_array(std::move(refused));
  out["lost_pkts"] = to_array(std::move(lost));
  out["received_pkts"] = to_array(std::move(received));
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

// One array with a value for each subflow.
template <class Value>
nb::object column_of(Simulation& self, Value value) {
  std::vector<decltype(value(std::uint32_t{0}))> out;
  const auto count = static_cast<std::uint32_t>(self.tcp().subflows().size());
  out.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) out.push_back(value(i));
  return to_array(std::move(out));
}

nb::dict subflow_readings(Simulation& self) {
  const Tcp& tcp = self.tcp();
  const auto sender = [&](std::uint32_t i) -> const SenderState& { return tcp.subflows()[i].sender; };
  const Time now = self.now();
  nb::dict out;
  out["window_pkts"] = column_of(self, [&](std::uint32_t i) { return tcp.window_pkts(i); });
  out["srtt_ps"] = column_of(self, [&](std::uint32_t i) { return sender(i).rtt.srtt; });
  out["rttvar_ps"] = column_of(self, [&](std::uint32_t i) { return sender(i).rtt.variance; });
  out["retransmits"] = column_of(self, [&](std::uint32_t i) { return sender(i).retransmits; });
  out["timeouts"] = column_of(self, [&](std::uint32_t i) { return sender(i).timeouts; });
  out["acked_pkts"] = column_of(self, [&](std::uint32_t i) { return sender(i).board.una() - sender(i).abandoned; });
  out["acked_bytes"] = column_of(self, [&](std::uint32_t i) {
    const Subflow& subflow = tcp.subflows()[i];
    return std::uint64_t{subflow.sender.board.una() - subflow.sender.abandoned} * tcp.connections()[subflow.connection].payload_bytes;
  });
  out["unacked_pkts"] = column_of(self, [&](std::uint32_t i) { return sender(i).board.outstanding(); });
  out["notsent_bytes"] = column_of(self, [&](std::uint32_t i) { return tcp.unsent_bytes(i); });
  out["busy_ps"] = column_of(self, [&](std::uint32_t i) { return tcp.busy(i, now); });
  out["rwnd_limited_ps"] = column_of(self, [&](std::uint32_t i) { return tcp.rwnd_limited(i, now); });
  out["established"] = column_of(self, [&](std::uint32_t i) { return std::uint8_t{sender(i).established}; });
  return out;
}

std::vector<PortId> listed(const Path& path) { return {path.span().begin(), path.span().end()}; }

// Shortest paths there and back.
std::pair<std::uint32_t, std::uint32_t> path_count(Simulation& self, std::uint32_t number) {
  const Subflow& subflow = self.subflow(number);
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
          [](AgentConfig* self, const std::vector<nb::bytes>& programs, Time delay, Time jitter, std::uint64_t report_us,
             std::uint32_t seed, const nb::callable& answer) {
            new (self) AgentConfig(agent_of(programs, delay, jitter, report_us, seed, answer));
          },
          nb::kw_only(), "programs"_a, "delay_ps"_a, "jitter_ps"_a, "report_us"_a, "seed"_a, "answer"_a);
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
  bind_configuration(module);
  nb::class_<Simulation>(module, "Simulation")
      .def(
          "__init__",
          [](Simulation* self, const nb::object& plan, const nb::object& options, const std::vector<FlowConfig>& flows,
             const std::vector<DatagramConfig>& datagrams, const std::optional<NoiseConfig>& noise,
             const std::optional<AgentConfig>& agent, std::uint32_t threads) {
            new (self) Simulation(network_config(plan), options_of(options), flows, datagrams, noise, agent, threads);
          },
          "plan"_a, "options"_a, "flows"_a, "datagrams"_a = std::vector<DatagramConfig>{}, "noise"_a = nb::none(),
          "agent"_a = nb::none(), "threads"_a = 1)
      .def("run_until", &Simulation::run_until, "limit_ps"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("set_port_up", &Simulation::set_port_up,
           "port"_a, "up"_a, "now_ps"_a)
      .def("set_port_rate", &Simulation::set_port_rate, "port"_a, "rate_bps"_a)
      .def("restart_max_queues", &Simulation::restart_max_queues)
      .def("hops", [](Simulation& self) { return self.totals().hops; })
      .def("ports", [](Simulation& self) { return network_readings(self.network(), self.totals()); })
      .def("queues", queue_lengths)
      .def("path_delays", path_delays, "size_bytes"_a, "now_ps"_a)
      .def("flows", flow_readings)
      .def("datagrams", datagram_readings)
      .def("descriptors_in_use", [](Simulation& self) { return self.descriptors_in_use(); })
      .def("noise", noise_readings)
      .def("agent", agent_readings)
      .def("subflows", subflow_readings)
      .def("path", [](const Simulation& self, std::uint32_t subflow) { return listed(self.subflow(subflow).forward); },
           "subflow"_a)
      .def("back_path", [](const Simulation& self, std::uint32_t subflow) { return listed(self.subflow(subflow).back); },
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
