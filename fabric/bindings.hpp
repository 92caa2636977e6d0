// Shared by all parts of the Python module: returning arrays without copies.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace fabric {

template <class T>
auto to_array(std::vector<T> values) {
  auto* owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {owned->size()}, owner));
}

void bind_realtime(nb::module_& module);
void bind_traffic(nb::module_& module);
void bind_sockets(nb::module_& module);
void bind_simulation(nb::module_& module);
void bind_congestion(nb::module_& module);
void bind_flow_level(nb::module_& module);
void bind_ims(nb::module_& module);

}  // namespace fabric
