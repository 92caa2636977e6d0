// Python bindings: what the kernel knows of all hosts' sockets, pings between hosts, and the flows of all hosts.
#include <arpa/inet.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <limits>

#include "bindings.hpp"
#include "host_io/flow_driver.hpp"
#include "host_io/pinger.hpp"
#include "host_io/socket_dump.hpp"

namespace fabric {

namespace {

nb::object socket_record_dtype() {
  nb::list names;
  nb::list formats;
  nb::list offsets;
  const auto add = [&](const char* name, const char* format, std::size_t offset) {
    names.append(name);
    formats.append(format);
    offsets.append(offset);
  };
  add("bytes_acked", "u8", offsetof(SocketRecord, bytes_acked));
  add("delivery_rate", "u8", offsetof(SocketRecord, delivery_rate));
  add("busy_us", "u8", offsetof(SocketRecord, busy_us));
  add("rwnd_limited_us", "u8", offsetof(SocketRecord, rwnd_limited_us));
  add("host", "u4", offsetof(SocketRecord, host));
  add("laddr", "u4", offsetof(SocketRecord, laddr));
  add("raddr", "u4", offsetof(SocketRecord, raddr));
  add("token", "u4", offsetof(SocketRecord, token));
  add("flags", "u4", offsetof(SocketRecord, flags));
  add("cwnd_pkts", "u4", offsetof(SocketRecord, cwnd_pkts));
  add("ssthresh_pkts", "u4", offsetof(SocketRecord, ssthresh_pkts));
  add("srtt_us", "u4", offsetof(SocketRecord, srtt_us));
  add("rttvar_us", "u4", offsetof(SocketRecord, rttvar_us));
  add("min_rtt_us", "u4", offsetof(SocketRecord, min_rtt_us));
  add("retransmits", "u4", offsetof(SocketRecord, retransmits));
  add("unacked_pkts", "u4", offsetof(SocketRecord, unacked_pkts));
  add("delivered_pkts", "u4", offsetof(SocketRecord, delivered_pkts));
  add("notsent_bytes", "u4", offsetof(SocketRecord, notsent_bytes));
  add("lport", "u2", offsetof(SocketRecord, lport));
  add("rport", "u2", offsetof(SocketRecord, rport));
  add("state", "u1", offsetof(SocketRecord, state));
  add("cc", "u1", offsetof(SocketRecord, cc));
  nb::dict layout;
  layout["names"] = names;
  layout["formats"] = formats;
  layout["offsets"] = offsets;
  layout["itemsize"] = sizeof(SocketRecord);
  return nb::module_::import_("numpy").attr("dtype")(layout);
}

// One buffer, handed over without a copy.
nb::object to_records(std::vector<SocketRecord> records) {
  const nb::object dtype = nb::module_::import_("fabric._core").attr("SOCKET_RECORD");
  auto* owned = new std::vector<SocketRecord>(std::move(records));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<SocketRecord>*>(p); });
  auto* bytes = reinterpret_cast<std::uint8_t*>(owned->data());
  const std::size_t size = owned->size() * sizeof(SocketRecord);
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(bytes, {size}, owner)).attr("view")(dtype);
}

std::vector<std::uint8_t> to_vector(const nb::bytes& bytes) {
  const auto* data = static_cast<const std::uint8_t*>(bytes.data());
  return {data, data + bytes.size()};
}

SocketDump make_dump(const std::vector<std::string>& names, const std::vector<int>& sockets,
                     const nb::bytes& request) {
  if (names.size() != sockets.size()) throw std::invalid_argument("one netlink socket a host");
  std::vector<SocketDump::Host> hosts;
  hosts.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) hosts.push_back({names[i], {sockets[i], "netlink socket"}});
  return {std::move(hosts), to_vector(request)};
}

std::vector<FileDescriptor> adopt(const std::vector<int>& sockets) {
  std::vector<FileDescriptor> owned;
  owned.reserve(sockets.size());
  for (const int socket : sockets) owned.emplace_back(socket, "ping socket");
  return owned;
}

using ProbeNumbers = std::tuple<std::size_t, std::uint32_t, std::uint16_t>;

std::vector<PingProbe> probes_of(const std::vector<ProbeNumbers>& numbers) {
  std::vector<PingProbe> probes;
  for (const auto& [socket, ip, port] : numbers) {
    PingProbe probe;
    probe.socket = socket;
    probe.to.sin_family = AF_INET;
    probe.to.sin_addr.s_addr = htonl(ip);
    probe.to.sin_port = htons(port);
    probes.push_back(probe);
  }
  return probes;
}

nb::dict to_columns(const std::vector<Ping>& pings) {
  const auto ms_of = [](const Ping& ping, std::int64_t ns) {
    return ping.answered() ? static_cast<double>(ns) / 1e6 : std::numeric_limits<double>::quiet_NaN();
  };
  nb::dict out;
  out["sent_s"] = column_of(pings, [](const Ping& ping) { return static_cast<double>(ping.sent_ns) / 1e9; });
  out["probe"] = column_of(pings, &Ping::probe);
  out["out_ms"] = column_of(pings, [&](const Ping& ping) { return ms_of(ping, ping.out_ns); });
  out["back_ms"] = column_of(pings, [&](const Ping& ping) { return ms_of(ping, ping.back_ns); });
  return out;
}

void bind_pinger(nb::module_& module) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Pinger>(module, "Pinger")
      .def(
          "__init__",
          [](Pinger* self, const std::vector<int>& sockets, const std::vector<ProbeNumbers>& probes,
             double interval_ms, double lost_after_s, int cpu) {
            PingOptions options;
            options.interval_ns = static_cast<std::int64_t>(interval_ms * 1e6);
            options.lost_after_ns = static_cast<std::int64_t>(lost_after_s * 1e9);
            options.cpu = cpu;
            new (self) Pinger(adopt(sockets), probes_of(probes), options);
          },
          "sockets"_a, "probes"_a, nb::kw_only(), "interval_ms"_a, "lost_after_s"_a, "cpu"_a = -1)
      .def("start", &Pinger::start, Release())
      .def("pause", &Pinger::pause)
      .def("resume", &Pinger::resume)
      .def("stop", &Pinger::stop, Release())
      .def(
          "take",
          [](Pinger& self, bool all) {
            std::vector<Ping> pings;
            {
              const nb::gil_scoped_release release;
              pings = self.take(all);
            }
            return to_columns(pings);
          },
          "all"_a = false,
          nb::sig("def take(self, all: bool = False) -> dict[str, numpy.typing.NDArray[numpy.float64]]"))
      .def("cpu_s", [](Pinger& self) { return static_cast<double>(self.cpu_ns()) / 1e9; });
}

// What the kernel refused reaches Python as OSError with its errno.
template <class Work>
void raising_os_error(Work work) {
  try {
    const nb::gil_scoped_release release;
    work();
  } catch (const std::system_error& error) {
    const nb::object arguments = nb::make_tuple(error.code().value(), error.what());
    PyErr_SetObject(PyExc_OSError, arguments.ptr());
    throw nb::python_error();
  }
}

double seconds(std::int64_t ns) { return ns == kNotYet ? std::nan("") : static_cast<double>(ns) / 1e9; }

nb::dict to_dict(const FlowDriver& driver) {
  const std::vector<FlowReading> readings = driver.readings();
  nb::dict out;
  out["state"] = column_of(readings, [](const FlowReading& r) { return static_cast<std::uint8_t>(r.state); });
  out["received_bytes"] = column_of(readings, &FlowReading::received_bytes);
  out["sent_bytes"] = column_of(readings, &FlowReading::sent_bytes);
  out["ready_s"] = column_of(readings, [](const FlowReading& r) { return seconds(r.ready_ns); });
  out["started_s"] = column_of(readings, [](const FlowReading& r) { return seconds(r.started_ns); });
  out["completed_s"] = column_of(readings, [](const FlowReading& r) { return seconds(r.completed_ns); });
  out["retransmitted"] = column_of(readings, &FlowReading::retransmitted);
  out["errno"] = column_of(readings, &FlowReading::error);
  out["strangers"] = driver.strangers();
  out["cpu_s"] = seconds(driver.cpu_ns());
  return out;
}

}  // namespace

void bind_sockets(nb::module_& module) {
  bind_pinger(module);
  module.attr("SOCKET_RECORD") = socket_record_dtype();
  nb::class_<SocketDump>(module, "SocketDump")
      .def(
          "__init__",
          [](SocketDump* self, const std::vector<std::string>& names, const std::vector<int>& sockets,
             const nb::bytes& request) { new (self) SocketDump(make_dump(names, sockets, request)); },
          "names"_a, "sockets"_a, "request"_a)
      .def("read",
           [](SocketDump& self) {
             std::vector<SocketRecord> records;
             {
               const nb::gil_scoped_release release;
               records = self.read();
             }
             return to_records(std::move(records));
           },
           nb::sig("def read(self) -> numpy.typing.NDArray[numpy.void]"))
      .def_prop_ro("cc_names", &SocketDump::cc_names);

  // Exposed so that a test can check the parser with messages of real kernels.
  module.def("parse_socket", [](const nb::bytes& message) {
    NameList ccs;
    std::vector<SocketRecord> records(1);
    if (!parse_socket(to_vector(message), ccs, records[0])) records.clear();
    return nb::make_tuple(to_records(std::move(records)), ccs.names());
  }, nb::sig("def parse_socket(message: bytes, /) -> tuple[numpy.typing.NDArray[numpy.void], list[str]]"));
}

void bind_traffic(nb::module_& module) {
  nb::class_<FlowSpec>(module, "TrafficFlow")
      .def(
          "__init__",
          [](FlowSpec* self, std::uint32_t src_host, std::uint32_t src_ip, std::uint16_t src_port, std::uint32_t dst_host,
             std::uint32_t dst_ip, std::uint16_t dst_port, std::uint64_t size_bytes, double start_s, const std::string& cc,
             bool mptcp, std::optional<FlowId> after, std::uint8_t dscp) {
            if (dscp > 63) throw std::invalid_argument("DSCP has six bits: 0 to 63");
            new (self) FlowSpec{src_host, dst_host, {src_ip, src_port}, {dst_ip, dst_port}, size_bytes,
                                std::llround(start_s * 1e9), after.value_or(kNoFlow), {cc, mptcp, dscp}};
          },
          nb::kw_only(), "src_host"_a, "src_ip"_a, "src_port"_a, "dst_host"_a, "dst_ip"_a, "dst_port"_a, "size_bytes"_a,
          "start_s"_a, "cc"_a = "", "mptcp"_a = false, "after"_a = nb::none(), "dscp"_a = 0);
  nb::class_<FlowDriver>(module, "FlowDriver")
      .def(
          "__init__",
          [](FlowDriver* self, const std::vector<FlowSpec>& flows, const std::vector<int>& pids, int cpu, unsigned loops,
             std::size_t write_bytes, std::size_t read_bytes, int sizes_map, bool rank_by_sent) {
            if (read_bytes < 1 || read_bytes > 1 << 20) throw std::invalid_argument("reads are of 1 byte to 1 MB");
            new (self) FlowDriver(flows, pids, {cpu, loops, read_bytes, write_bytes, sizes_map, rank_by_sent});
          },
          "flows"_a, "pids"_a, nb::kw_only(), "cpu"_a = -1, "loops"_a = 1, "write_bytes"_a = 0, "read_bytes"_a = 1,
          "sizes_map"_a = -1, "rank_by_sent"_a = false)
      .def("open", [](FlowDriver& self) { raising_os_error([&] { self.open(); }); })
      .def("connect", [](FlowDriver& self) { raising_os_error([&] { self.connect(); }); })
      .def("release", [](FlowDriver& self) { raising_os_error([&] { self.release(); }); })
      .def("stop", [](FlowDriver& self) { raising_os_error([&] { self.stop(); }); })
      .def("readings", &to_dict, nb::sig("def readings(self) -> fabric.readings.TrafficReadings"))
      .def("describe_failure", &FlowDriver::describe_failure, "flow"_a);
}

}  // namespace fabric
