// The list of queues. To add one (queue.hpp), add its class here. This file is compiled apart from those of the queues,
// whose classes it only names.
#include "core/disciplines/registry.hpp"

namespace fabric {

// Defined in the file of each queue (queued_port.hpp).
template <class Queue>
QueueKind kind_of();

template <class... Queues>
struct KindsOf {
  static std::vector<QueueKind> all() { return {QueueKind{.name = "fifo", .settings = {}}, kind_of<Queues>()...}; }
};

// clang-format off
using Kinds = KindsOf<
    class CoDel,
    class Drr,
    class FqCoDel,
    class InOrder,
    class PFabric,
    class PFabricBands,
    class PFabricDropping,
    class PFabricScheduling,
    class Pfc,
    class Phantom,
    class Pie,
    class Red,
    class SharedBuffer,
    class StrictPriority,
    class Trim>;
// clang-format on

const std::vector<QueueKind>& queue_kinds() {
  static const std::vector<QueueKind> all = Kinds::all();
  return all;
}

QueueSettings settings_of(const QueueKind& kind, const SettingsByName& given) {
  const auto found = given.find(kind.name);
  return settings_of("the queue " + std::string(kind.name), kind.settings,
                     found == given.end() ? std::map<std::string, double>{} : found->second);
}

}  // namespace fabric
