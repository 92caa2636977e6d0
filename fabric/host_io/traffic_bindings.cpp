// Python bindings: the flows of all hosts, driven by one thread.
#include <cmath>

#include "bindings.hpp"
#include "host_io/flow_driver.hpp"

namespace fabric {

namespace {

using DrivenFlow = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint16_t, std::uint32_t, std::uint16_t,
                             std::uint64_t, double, std::string, bool, std::int64_t, std::uint8_t>;

FlowSpec flow_spec(const DrivenFlow& flow) {
  const auto& [src_host, dst_host, src_ip, src_port, dst_ip, dst_port, size_bytes, start_s, cc, mptcp, after, dscp] = flow;
  if (dscp > 63) throw std::invalid_argument("DSCP has six bits: 0 to 63");
  const FlowId awaited = after < 0 ? kNoFlow : static_cast<FlowId>(after);
  const SocketOptions sockets{cc, mptcp, dscp};
  return {src_host, dst_host, {src_ip, src_port}, {dst_ip, dst_port}, size_bytes, std::llround(start_s * 1e9), awaited, sockets};
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

template <class Of>
auto column_of(const std::vector<FlowReading>& readings, Of of) {
  std::vector<decltype(of(readings.front()))> values;
  values.reserve(readings.size());
  for (const FlowReading& reading : readings) values.push_back(of(reading));
  return to_array(std::move(values));
}

nb::dict to_dict(const FlowDriver& driver) {
  const std::vector<FlowReading> readings = driver.readings();
  nb::dict out;
  out["state"] = column_of(readings, [](const FlowReading& r) { return static_cast<std::uint8_t>(r.state); });
  out["received_bytes"] = column_of(readings, [](const FlowReading& r) { return r.received_bytes; });
  out["sent_bytes"] = column_of(readings, [](const FlowReading& r) { return r.sent_bytes; });
  out["ready_s"] = column_of(readings, [](const FlowReading& r) { return seconds(r.ready_ns); });
  out["started_s"] = column_of(readings, [](const FlowReading& r) { return seconds(r.started_ns); });
  out["completed_s"] = column_of(readings, [](const FlowReading& r) { return seconds(r.completed_ns); });
  out["retransmitted"] = column_of(readings, [](const FlowReading& r) { return r.retransmitted; });
  out["errno"] = column_of(readings, [](const FlowReading& r) { return r.error; });
  out["strangers"] = driver.strangers();
  out["cpu_s"] = seconds(driver.cpu_ns());
  return out;
}

}  // namespace

void bind_traffic(nb::module_& module) {
  nb::class_<FlowDriver>(module, "FlowDriver")
      .def(
          "__init__",
          [](FlowDriver* self, const std::vector<DrivenFlow>& flows, const std::vector<int>& pids, int cpu, unsigned loops,
             std::size_t write_bytes, std::size_t read_bytes, int sizes_map, bool rank_by_sent) {
            if (read_bytes < 1 || read_bytes > 1 << 20) throw std::invalid_argument("reads are of 1 byte to 1 MB");
            std::vector<FlowSpec> specs;
            for (const DrivenFlow& flow : flows) specs.push_back(flow_spec(flow));
            new (self) FlowDriver(std::move(specs), pids, {cpu, loops, read_bytes, write_bytes, sizes_map, rank_by_sent});
          },
          "flows"_a, "pids"_a, nb::kw_only(), "cpu"_a = -1, "loops"_a = 1, "write_bytes"_a = 0, "read_bytes"_a = 1,
          "sizes_map"_a = -1, "rank_by_sent"_a = false)
      .def("open", [](FlowDriver& self) { raising_os_error([&] { self.open(); }); })
      .def("connect", [](FlowDriver& self) { raising_os_error([&] { self.connect(); }); })
      .def("release", [](FlowDriver& self) { raising_os_error([&] { self.release(); }); })
      .def("stop", [](FlowDriver& self) { raising_os_error([&] { self.stop(); }); })
      .def("readings", &to_dict)
      .def("describe_failure", &FlowDriver::describe_failure, "flow"_a);
}

}  // namespace fabric
