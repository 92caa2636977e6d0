#include "bindings.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <string>

#include "core/k_shortest.hpp"

namespace fabric {

namespace {

template <class T>
std::vector<T> as_column(nb::handle values, const std::string& name) {
  // No conversion: a number that does not fit its column must not wrap around.
  nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
  if (!nb::try_cast(values, array, false)) {
    throw std::invalid_argument("network plan: " + name + " has not the type or shape of its column");
  }
  return {array.data(), array.data() + array.size()};
}

template <class T>
std::vector<T> column(const NetworkPlan& plan, const char* name) {
  return as_column<T>(plan.attr(name), name);
}

void check_lengths(bool equal) {
  if (!equal) throw std::invalid_argument("network plan: the ports' columns differ in length");
}

// `NetworkPlan.admission`: a column of numbers for each setting, by its name.
void set_up_admission(const NetworkPlan& plan, std::vector<PortConfig>& ports) {
  nb::dict columns;
  if (!nb::try_cast(plan.attr("admission"), columns)) {
    throw std::invalid_argument("network plan: admission must be columns by name");
  }
  for (const auto& [key, values] : columns) {
    const std::string name = nb::str(key).c_str();
    const AdmissionSetting& setting = admission_setting(name);
    const auto numbers = as_column<double>(values, name);
    check_lengths(numbers.size() == ports.size());
    for (std::size_t i = 0; i < ports.size(); ++i) setting.set(ports[i].admission, numbers[i]);
  }
}

std::vector<PortConfig> ports_of(const NetworkPlan& plan) {
  const auto rates = column<std::int64_t>(plan, "rate_bps");
  const auto delays = column<std::int64_t>(plan, "delay_ps");
  const auto pkts = column<std::uint32_t>(plan, "queue_pkts");
  const auto bytes = column<std::uint64_t>(plan, "queue_bytes");
  const auto loss = column<double>(plan, "loss");
  const auto discipline = column<std::uint8_t>(plan, "discipline");
  const auto traced = column<std::uint8_t>(plan, "traced");
  check_lengths(delays.size() == rates.size() && pkts.size() == rates.size() && bytes.size() == rates.size() &&
                loss.size() == rates.size() && discipline.size() == rates.size() &&
                (traced.empty() || traced.size() == rates.size()));
  std::vector<PortConfig> ports(rates.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    ports[i] = {.rate_bps = rates[i],
                .delay = delays[i],
                .admission = {},
                .loss_below = threshold(loss[i]),
                .discipline = discipline[i],
                .traced = !traced.empty() && traced[i] != 0};
    ports[i].admission.tail = {.limit_pkts = pkts[i], .limit_bytes = bytes[i]};
  }
  set_up_admission(plan, ports);
  return ports;
}

// `NetworkPlan.queue_settings`: numbers by the names of disciplines and of their settings.
SettingsByName queue_settings_of(const NetworkPlan& plan) {
  SettingsByName settings;
  if (nb::try_cast(plan.attr("queue_settings"), settings)) return settings;
  throw std::invalid_argument("network plan: queue_settings must be numbers by two names");
}

std::vector<Nic> nics_of(const NetworkPlan& plan) {
  const auto ip = column<std::uint32_t>(plan, "nic_ip");
  const auto node = column<std::uint32_t>(plan, "nic_attach_node");
  const auto attach = column<std::uint32_t>(plan, "nic_attach");
  const auto uplink = column<std::uint32_t>(plan, "nic_uplink");
  const auto downlink = column<std::uint32_t>(plan, "nic_downlink");
  if (node.size() != ip.size() || attach.size() != ip.size() || uplink.size() != ip.size() ||
      downlink.size() != ip.size()) {
    throw std::invalid_argument("network plan: the NICs' columns differ in length");
  }
  std::vector<Nic> nics(ip.size());
  for (std::size_t i = 0; i < nics.size(); ++i) nics[i] = {ip[i], node[i], attach[i], uplink[i], downlink[i]};
  return nics;
}

// None for a network without traced ports.
std::shared_ptr<const Opportunities> opportunities_of(const NetworkPlan& plan) {
  std::vector<Time> at = column<Time>(plan, "opportunities_ps");
  if (at.empty()) return nullptr;
  return std::make_shared<const Opportunities>(std::move(at), nb::cast<Time>(plan.attr("opportunities_period_ps")));
}

Policy policy_of(const std::string& name) {
  if (name == "hashed") return Policy::hashed;
  if (name == "ecmp") return Policy::ecmp;
  if (name == "wcmp") return Policy::wcmp;
  if (name == "scatter") return Policy::scatter;
  if (name == "valiant") return Policy::valiant;
  if (name == LetFlow::kName) return Policy::letflow;
  if (name == Drill::kName) return Policy::drill;
  if (name == Conga::kName) return Policy::conga;
  if (name == FlowCells::kName) return Policy::presto;
  throw std::invalid_argument("the fabric knows no routing policy '" + name + "'");
}

// The packet, the NIC that it reached (or the port that dropped it), when, whether it was dropped, its ECN field.
using Departure = std::tuple<PacketId, std::uint32_t, Time, bool, int>;

// Carries the packets that the caller injects, and logs what happens to them.
class VirtualFabric {
 public:
  explicit VirtualFabric(const NetworkPlan& plan) : network_(network_config(plan)) {}

  PacketId inject(Time when, NicId source, std::uint16_t size_bytes, const FiveTuple& flow, Ecn ecn, std::uint8_t dscp,
                  std::uint32_t rank) {
    if (source >= network_.router().nics().size()) throw std::invalid_argument("there is no such NIC");
    if (size_bytes == 0) throw std::invalid_argument("a packet has at least one byte");
    carry_until(when);
    const NicId destination = network_.router().find_nic(flow.dst);
    if (destination == kNone) throw std::invalid_argument("no host has the destination address");
    const PacketId id = network_.pool().acquire_or_throw();
    Packet& packet = network_.pool()[id];
    packet.kind = Kind::packet;
    packet.size_bytes = size_bytes;
    packet.ecn = ecn;
    packet.dscp = dscp & kDscpBits;
    packet.owner = destination;
    if (network_.pool().ranks_packets()) network_.pool().precedence(id) = {rank, flow_hash(flow)};
    try {
      network_.route(id, source, destination, flow);
    } catch (const std::length_error&) {
      network_.pool().release(id);
      throw;
    }
    network_.inject(id, when, *this);
    return id;
  }

  std::vector<Departure> run_until(Time limit) {
    carry_until(limit);
    return std::exchange(log_, {});
  }

  void carry_until(Time limit) {
    network_.run_until(limit, *this);
    now_ = limit;
  }

  void deliver(PacketId id, Time due) { finish(id, network_.pool()[id].owner, due, false); }
  void alarm(PacketId, Time) {}
  void dropped(PacketId id, PortId port, Time when) { finish(id, port, when, true); }

  Network& network() { return network_; }
  // For reading queues and counters.
  const Network& settled() {
    network_.settle(now_);
    return network_;
  }

 private:
  void finish(PacketId id, std::uint32_t where, Time when, bool dropped) {
    log_.emplace_back(id, where, when, dropped, static_cast<int>(network_.pool()[id].ecn));
    network_.pool().release(id);
  }

  Network network_;
  Time now_ = 0;
  std::vector<Departure> log_;
};

void bind_virtual(nb::module_& module) {
  nb::class_<VirtualFabric>(module, "VirtualFabric")
      .def(nb::init<const NetworkPlan&>(), "plan"_a)
      .def(
          "inject",
          [](VirtualFabric& self, Time when_ps, NicId nic, std::uint16_t size_bytes,
             const FiveTupleNumbers& flow, std::uint8_t ecn, std::uint8_t dscp, std::uint32_t rank) {
            if (ecn > 3) throw std::invalid_argument("an ECN field has two bits");
            if (dscp > kDscpBits) throw std::invalid_argument("DSCP has six bits");
            return self.inject(when_ps, nic, size_bytes, five_tuple(flow), Ecn{ecn}, dscp, rank);
          },
          "when_ps"_a, "nic"_a, "size_bytes"_a, "flow"_a, "ecn"_a = 0, "dscp"_a = 0, "rank"_a = Precedence::kLast)
      .def("run_until", &VirtualFabric::run_until, "limit_ps"_a)
      .def(
          "set_port_up",
          [](VirtualFabric& self, PortId port, bool up, Time when_ps) {
            self.carry_until(when_ps);
            self.network().set_port_up(port, up, when_ps, self);
          },
          "port"_a, "up"_a, "when_ps"_a)
      .def(
          "set_port_rate",
          [](VirtualFabric& self, PortId port, std::int64_t rate_bps, Time when_ps) {
            self.carry_until(when_ps);
            self.network().set_port_rate(port, rate_bps);
          },
          "port"_a, "rate_bps"_a, "when_ps"_a)
      .def(
          "reroute",
          [](VirtualFabric& self, const NetworkPlan& plan, Time when_ps) {
            self.carry_until(when_ps);
            self.network().reroute(table_of(plan));
          },
          "plan"_a, "when_ps"_a)
      .def(
          "set_path",
          [](VirtualFabric& self, const FiveTupleNumbers& flow, const std::vector<PortId>& ports) {
            self.network().router().choose(five_tuple(flow), path_along(ports));
          },
          "flow"_a, "ports"_a)
      .def(
          "clear_path",
          [](VirtualFabric& self, const FiveTupleNumbers& flow) {
            self.network().router().leave_to_routing(five_tuple(flow));
          },
          "flow"_a)
      .def("deadlocked", [](VirtualFabric& self) { return self.network().deadlocked(); })
      .def(
          "counters",
          [](VirtualFabric& self) {
            nb::dict out = network_readings(self.settled(), self.network().totals());
            out["in_flight"] = self.network().pool().in_use();
            return out;
          },
          nb::sig("def counters(self) -> fabric.readings.Counters"));
}

// Exposed so that a test can compare the Calendar with a sorted list. Events are numbers.
class NumberedCalendar {
 public:
  NumberedCalendar(int width_log2, int slots_log2) : pool_(std::size_t{1} << 16), calendar_(width_log2, slots_log2) {}

  void push(Time due, std::uint32_t what) {
    const PacketId id = pool_.acquire();
    if (id == kNone) throw std::length_error("too many events");
    pool_[id].due = due;
    pool_[id].owner = what;
    calendar_.push(pool_, id);
  }

  std::vector<std::pair<Time, std::uint32_t>> pop_until(Time limit) {
    std::vector<std::pair<Time, std::uint32_t>> out;
    while (true) {
      const PacketId id = calendar_.pop_until(limit, NoCache{});
      if (id == kNone) return out;
      out.emplace_back(pool_[id].due, pool_[id].owner);
      pool_.release(id);
    }
  }

  [[nodiscard]] Time next_due() const { return calendar_.next_due(); }
  [[nodiscard]] std::size_t size() const { return calendar_.size(); }

 private:
  struct NoCache {
    void first(PacketId) const {}
    void far(PacketId) const {}
    void near(PacketId) const {}
  };

  PacketPool pool_;
  Calendar calendar_;
};

void bind_calendar(nb::module_& module) {
  nb::class_<NumberedCalendar>(module, "Calendar")
      .def(nb::init<int, int>(), "width_log2"_a, "slots_log2"_a)
      .def("push", &NumberedCalendar::push, "due"_a, "what"_a)
      .def("next_due", &NumberedCalendar::next_due)
      .def("__len__", &NumberedCalendar::size)
      .def("pop_until", &NumberedCalendar::pop_until, "limit"_a);
}

}  // namespace

bool NetworkPlan::is_network_plan(PyObject* object) {
  return nb::isinstance(object, nb::module_::import_("fabric.plan").attr("NetworkPlan"));
}

Path path_along(std::span<const PortId> ports) {
  Path path;
  for (const PortId port : ports) {
    if (!path.add(port)) throw std::length_error("a path passes more than 10 links, which is what a packet can hold");
  }
  return path;
}

ForwardingTable table_of(const NetworkPlan& plan) {
  const auto ports = column<std::uint32_t>(plan, "member_port");
  const auto paths = column<std::uint32_t>(plan, "member_paths");
  if (ports.size() != paths.size()) throw std::invalid_argument("network plan: one path count a group member");
  std::vector<GroupMember> members(ports.size());
  for (std::size_t i = 0; i < members.size(); ++i) members[i] = {ports[i], paths[i]};
  return {nb::cast<std::size_t>(plan.attr("attachments")), column<std::int32_t>(plan, "fib"),
          column<std::uint32_t>(plan, "group_offsets"), std::move(members), column<std::uint32_t>(plan, "fib_rows"),
          PathLists(nb::cast<std::size_t>(plan.attr("attachments")), column<std::uint32_t>(plan, "list_paths"),
                    column<std::uint32_t>(plan, "list_ports"), column<std::uint32_t>(plan, "path_weight"),
                    column<std::uint32_t>(plan, "path_port"))};
}

NetworkConfig network_config(const NetworkPlan& plan) {
  return NetworkConfig{.ports = ports_of(plan),
                       .far_nodes = column<std::uint32_t>(plan, "far_node"),
                       .nics = nics_of(plan),
                       .table = table_of(plan),
                       .policy = policy_of(nb::cast<std::string>(plan.attr("policy"))),
                       .parameters = PolicyParameters(nb::cast<std::map<std::string, double>>(plan.attr("parameters"))),
                       .seed = nb::cast<std::uint32_t>(plan.attr("seed")),
                       .max_packets = nb::cast<std::size_t>(plan.attr("max_packets")),
                       .opportunities = opportunities_of(plan),
                       .queue_settings = queue_settings_of(plan),
                       .partitions = column<std::uint16_t>(plan, "partition")};
}

void add_port_counters(nb::dict& out, std::span<const PortCounters> ports, std::span<const std::uint32_t> queued) {
  out["tx_packets"] = column_of(ports, &PortCounters::tx_packets);
  out["tx_bytes"] = column_of(ports, &PortCounters::tx_bytes);
  out["drops"] = column_of(ports, &PortCounters::drops);
  out["pushed_out"] = column_of(ports, &PortCounters::pushed_out);
  out["early_drops"] = column_of(ports, &PortCounters::early_drops);
  out["pause_frames"] = column_of(ports, &PortCounters::pause_frames);
  out["paused_ps"] = column_of(ports, &PortCounters::paused);
  out["losses"] = column_of(ports, &PortCounters::losses);
  out["marks"] = column_of(ports, &PortCounters::marks);
  out["max_queue_pkts"] = column_of(ports, &PortCounters::max_queue_pkts);
  out["queued_pkts"] = to_array(std::vector<std::uint32_t>(queued.begin(), queued.end()));
}

nb::dict network_readings(const Network& network, const Totals& totals) {
  std::vector<PortCounters> counters;
  std::vector<std::uint32_t> queued;
  for (PortId port = 0; port < network.ports().size(); ++port) {
    counters.push_back(network.counters(port));
    queued.push_back(network.ports()[port].queued_pkts());
  }
  nb::dict out;
  add_port_counters(out, counters, queued);
  out["injected"] = totals.injected;
  out["delivered"] = totals.delivered;
  out["dropped"] = totals.dropped;
  out["lost"] = totals.lost;
  out["hops"] = totals.hops;
  return out;
}

}  // namespace fabric

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // whatever is alive when Python exits goes with it
  module.attr("SOURCES") = fabric::sources_digest();
  module.def("flow_hash", [](std::uint32_t src, std::uint32_t dst, std::uint8_t proto, std::uint16_t sport,
                             std::uint16_t dport) { return fabric::flow_hash({src, dst, proto, sport, dport}); });
  module.def("mix", &fabric::mix, "hash"_a, "seed"_a);
  module.def("switch_seed", &fabric::switch_seed, "seed"_a, "node"_a);
  nb::class_<fabric::Graph>(module, "Graph")
      .def(nb::init<std::vector<fabric::NodePath>>(), "neighbours"_a)
      .def("k_shortest", &fabric::Graph::k_shortest, "source"_a, "target"_a, "k"_a, "most_links"_a);
  nb::class_<fabric::QueueSetting>(module, "QueueSetting")
      .def_ro("name", &fabric::QueueSetting::name)
      .def_ro("unit", &fabric::QueueSetting::unit)
      .def_ro("least", &fabric::QueueSetting::least)
      .def_ro("most", &fabric::QueueSetting::most)
      .def_ro("usual", &fabric::QueueSetting::usual)
      .def_ro("whole", &fabric::QueueSetting::whole)
      .def_ro("words", &fabric::QueueSetting::words);
  nb::class_<fabric::QueueKind>(module, "QueueKind")
      .def_ro("name", &fabric::QueueKind::name)
      .def_prop_ro("settings", [](const fabric::QueueKind& self) {
        return std::vector<fabric::QueueSetting>(self.settings.begin(), self.settings.end());
      })
      .def_ro("by_rank", &fabric::QueueKind::by_rank)
      .def_ro("marks", &fabric::QueueKind::marks)
      .def_ro("trims", &fabric::QueueKind::trims)
      .def_ro("lossless", &fabric::QueueKind::lossless)
      .def_ro("flow_bytes", &fabric::QueueKind::flow_bytes);
  module.def("queue_kinds", &fabric::queue_kinds);
  module.def("check_queue", [](const std::string& name, const std::map<std::string, double>& settings) {
    const auto& kinds = fabric::queue_kinds();
    const auto kind = std::ranges::find(kinds, name, &fabric::QueueKind::name);
    if (kind == kinds.end()) throw std::invalid_argument("there is no queue '" + name + "'");
    if (kind->port != nullptr) (void)kind->port(fabric::settings_of(*kind, {{name, settings}}), nullptr);
  }, "name"_a, "settings"_a);
  module.def("admission_settings", [] {
    std::vector<std::pair<std::string, bool>> settings;
    for (const auto& each : fabric::kAdmissionSettings) settings.emplace_back(each.name, each.in_hosts);
    return settings;
  });
  fabric::bind_calendar(module);
  fabric::bind_virtual(module);
  fabric::bind_realtime(module);
  fabric::bind_traffic(module);
  fabric::bind_sockets(module);
  fabric::bind_simulation(module);
  fabric::bind_congestion(module);
  fabric::bind_flow_level(module);
  fabric::bind_ims(module);
}
