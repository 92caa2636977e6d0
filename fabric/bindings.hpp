// Shared by all parts of the Python module: returning arrays without copies, reading a NetworkPlan, its counters.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/network.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fabric {

template <class T>
auto to_array(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner);
}

// One value for each row: a member of it, or what a function makes of it.
template <class Rows, class Of>
auto column_of(const Rows& rows, Of of) {
  std::vector<std::remove_cvref_t<std::invoke_result_t<Of, decltype(*std::begin(rows))>>> values;
  values.reserve(std::size(rows));
  for (const auto& row : rows) values.push_back(std::invoke(of, row));
  return to_array(std::move(values));
}

// The name of a member as the compiler prints it: `... Member = &fabric::TransportOptions::sack]`.
template <auto Member>
constexpr auto member_name() {
  constexpr std::string_view whole = __PRETTY_FUNCTION__;
  constexpr std::size_t begin = whole.rfind("::") + 2;
  constexpr std::size_t size = whole.find_first_of(");]", begin) - begin;
  std::array<char, size + 1> name{};
  whole.copy(name.data(), size, begin);
  return name;
}

struct Anything {
  template <class T>
  operator T() const;
};

// The number of fields of an aggregate: how many initialisers it takes.
template <class Record, class... Given>
consteval std::size_t field_count() {
  if constexpr (requires { Record{Given{}..., Anything{}}; }) {
    return field_count<Record, Given..., Anything>();
  } else {
    return sizeof...(Given);
  }
}

// fabric.plan.NetworkPlan.
class NetworkPlan : public nb::object {
  NB_OBJECT(NetworkPlan, nb::object, "fabric.plan.NetworkPlan", is_network_plan)
  static bool is_network_plan(PyObject* object);
};

// Source and destination address, protocol, source and destination port.
using FiveTupleNumbers = std::tuple<std::uint32_t, std::uint32_t, std::uint8_t, std::uint16_t, std::uint16_t>;

inline FiveTuple five_tuple(const FiveTupleNumbers& numbers) {
  const auto& [src, dst, proto, sport, dport] = numbers;
  return {src, dst, proto, sport, dport};
}

// Throws std::length_error for more ports than a packet can hold.
Path path_along(std::span<const PortId> ports);

// Throws std::invalid_argument on lengths that do not fit together.
NetworkConfig network_config(const NetworkPlan& plan);
// The forwarding tables and lists of paths alone.
ForwardingTable table_of(const NetworkPlan& plan);

void add_port_counters(nb::dict& out, std::span<const PortCounters> ports, std::span<const std::uint32_t> queued);

// Counters of all ports, and these totals. Queues must be settled.
nb::dict network_readings(const Network& network, const Totals& totals);

// Identifies the sources that this core was built from. Defined in a file of its own, which alone is compiled anew when
// the digest changes.
const char* sources_digest();

void bind_realtime(nb::module_& module);
void bind_traffic(nb::module_& module);
void bind_sockets(nb::module_& module);
void bind_simulation(nb::module_& module);
void bind_congestion(nb::module_& module);
void bind_flow_level(nb::module_& module);
void bind_ims(nb::module_& module);

}  // namespace fabric
