// The disciplines that choose which packet leaves next, in simulations and between real hosts. Each is a class with a
// kName and
//     void push(PacketPool&, PacketId);                        // the packet was admitted
//     PacketId pop(PacketPool&);                               // removes the next packet to send; kNone: it is empty
//     PacketId give_way(PacketPool&, PacketId newcomer);  // removes a packet to make room; kNone: drop the newcomer
// It may use the `next_in_slot` of its packets. With `kReadsPrecedence = true` every packet has a Precedence. To add
// one, add a file beside this one and its class to `Discipline`. The FIFO is not one of them: its departures are known
// on arrival (port.hpp).
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/disciplines/in_order.hpp"
#include "core/disciplines/pfabric.hpp"
#include "core/disciplines/pfabric_bands.hpp"
#include "core/disciplines/strict_priority.hpp"

namespace fabric {

using Discipline =
    std::variant<StrictPriority, PFabric, PFabricScheduling, PFabricDropping, PFabricBands, InOrder>;

inline constexpr std::string_view kFifo = "fifo";

namespace detail {

template <std::size_t... i>
std::vector<std::string_view> names(std::index_sequence<i...>) {
  return {kFifo, std::variant_alternative_t<i, Discipline>::kName...};
}

template <std::size_t i = 0>
Discipline nth(std::size_t number) {
  if constexpr (i < std::variant_size_v<Discipline>) {
    if (number == i) return Discipline(std::in_place_index<i>);
    return nth<i + 1>(number);
  } else {
    throw std::invalid_argument("there is no queue discipline " + std::to_string(number));
  }
}

}  // namespace detail

// In the order of their numbers in PortConfig: the FIFO is 0.
inline std::vector<std::string_view> discipline_names() {
  return detail::names(std::make_index_sequence<std::variant_size_v<Discipline>>{});
}

inline Discipline discipline(std::size_t number) { return detail::nth(number - 1); }

inline bool reads_precedence(const Discipline& discipline) {
  return std::visit([](const auto& queue) { return requires { queue.kReadsPrecedence; }; }, discipline);
}

}  // namespace fabric
