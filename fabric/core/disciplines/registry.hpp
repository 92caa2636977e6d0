// All queues but the FIFO, whose departures are known on arrival (port.hpp). To add one (queue.hpp), add its header and
// its class here.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/disciplines/codel.hpp"
#include "core/disciplines/drr.hpp"
#include "core/disciplines/fq_codel.hpp"
#include "core/disciplines/in_order.hpp"
#include "core/disciplines/pfabric.hpp"
#include "core/disciplines/pfabric_bands.hpp"
#include "core/disciplines/pfc.hpp"
#include "core/disciplines/phantom.hpp"
#include "core/disciplines/pie.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/red.hpp"
#include "core/disciplines/shared_buffer.hpp"
#include "core/disciplines/strict_priority.hpp"
#include "core/disciplines/trim.hpp"

namespace fabric {

// clang-format off
using Discipline = std::variant<
    CoDel,
    Drr,
    FqCoDel,
    InOrder,
    PFabric, PFabricDropping, PFabricScheduling,
    PFabricBands,
    Pfc,
    Phantom,
    Pie,
    Red,
    SharedBuffer,
    StrictPriority,
    Trim>;
// clang-format on

// What a queue states of itself.
struct QueueKind {
  std::string_view name;
  std::span<const QueueSetting> settings;
  bool by_rank = false;
  bool marks = false;
  bool trims = false;
  bool lossless = false;
  std::size_t flow_bytes = 0;  // memory of a port for each of its setting `flows`
};

inline constexpr std::string_view kFifo = "fifo";

namespace detail {

template <class Queue>
QueueKind kind() {
  QueueKind of{.name = Queue::kName, .settings = {}};
  if constexpr (requires { Queue::kSettings; }) of.settings = Queue::kSettings;
  if constexpr (requires { Queue::kReadsRank; }) of.by_rank = true;
  if constexpr (requires { Queue::kMarks; }) of.marks = true;
  if constexpr (requires { Queue::kTrims; }) of.trims = true;
  if constexpr (requires { Queue::kLossless; }) of.lossless = true;
  if constexpr (requires { Queue::kFlowBytes; }) of.flow_bytes = Queue::kFlowBytes;
  return of;
}

template <std::size_t... i>
std::vector<QueueKind> kinds(std::index_sequence<i...>) {
  return {QueueKind{.name = kFifo, .settings = {}}, kind<std::variant_alternative_t<i, Discipline>>()...};
}

template <std::size_t i = 0>
Discipline nth(std::size_t number, const QueueSettings& settings) {
  if constexpr (i < std::variant_size_v<Discipline>) {
    if (number != i) return nth<i + 1>(number, settings);
    using Queue = std::variant_alternative_t<i, Discipline>;
    if constexpr (requires { Queue::kSettings; }) return Discipline(std::in_place_type<Queue>, settings);
    else return Discipline(std::in_place_type<Queue>);
  } else {
    throw std::invalid_argument("there is no queue discipline " + std::to_string(number));
  }
}

}  // namespace detail

// In the order of their numbers in PortConfig: the FIFO is 0.
inline std::vector<QueueKind> queue_kinds() {
  return detail::kinds(std::make_index_sequence<std::variant_size_v<Discipline>>{});
}

// Settings by the names of a queue and of its settings; others have their usual values.
using SettingsByName = std::map<std::string, std::map<std::string, double>, std::less<>>;

// The queue with this number. Throws std::invalid_argument for a setting that it has not, or out of its range.
inline Discipline discipline(std::size_t number, const SettingsByName& given) {
  const QueueKind kind = queue_kinds().at(number);
  const auto found = given.find(kind.name);
  const auto& own = found == given.end() ? std::map<std::string, double>{} : found->second;
  return detail::nth(number - 1, settings_of("the queue " + std::string(kind.name), kind.settings, own));
}

inline bool is_lossless(const Discipline& discipline) {
  return std::visit([](const auto& queue) { return requires { queue.kLossless; }; }, discipline);
}

template <class Queue>
concept SharesBuffer = requires(const Queue& queue, const Packet& packet) { queue.has_room(packet, QueueLength{}, 0); };

inline bool shares_buffer(const Discipline& discipline) {
  return std::visit([]<class Queue>(const Queue&) { return SharesBuffer<Queue>; }, discipline);
}

inline bool reads_precedence(const Discipline& discipline) {
  return std::visit([](const auto& queue) { return requires { queue.kReadsRank; } || requires { queue.kReadsFlow; }; },
                    discipline);
}

}  // namespace fabric
