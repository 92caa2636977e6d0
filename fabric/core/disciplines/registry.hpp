// All kinds of queues.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/disciplines/queue.hpp"
#include "core/opportunities.hpp"
#include "core/scheduled_port.hpp"

namespace fabric {

// What a queue states of itself.
struct QueueKind {
  std::string_view name;
  std::span<const QueueSetting> settings;
  bool by_rank = false;
  bool reads_precedence = false;
  bool marks = false;
  bool trims = false;
  bool lossless = false;
  bool shares_buffer = false;
  std::size_t flow_bytes = 0;  // memory of a port for each of its setting `flows`
  // nullptr for the FIFO, whose departures are known on arrival (port.hpp).
  std::unique_ptr<ScheduledPort> (*port)(const QueueSettings&, std::shared_ptr<const Opportunities>) = nullptr;
};

// In the order of their numbers in PortConfig: the FIFO is 0.
const std::vector<QueueKind>& queue_kinds();

// Settings by the names of a queue and of its settings; others have their usual values.
using SettingsByName = std::map<std::string, std::map<std::string, double>, std::less<>>;

// Throws std::invalid_argument for a setting that the queue has not, or out of its range.
QueueSettings settings_of(const QueueKind& kind, const SettingsByName& given);

}  // namespace fabric
