// Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): flows, hashed to queues (stochastic fairness queueing:
// McKenney, INFOCOM 1990), take turns and send `quantum` bytes each. A full port drops the latest packet of the longest
// queue.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/disciplines/flow_queues.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class Drr {
 public:
  static constexpr std::string_view kName = "drr";
  static constexpr bool kReadsFlow = true;
  static constexpr std::size_t kFlowBytes = FlowQueues<FlowQueue>::kBytes;
  static constexpr std::array kSettings{kFlowQueues, kQuantum};

  explicit Drr(const QueueSettings& settings)
      : quantum_(settings.count("quantum_bytes")), queues_(settings.count("flows")) {}

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    active_.take(queues_, id, port, quantum_);
    return true;
  }

  [[nodiscard]] PacketId next(PortNow& port) {
    while (!active_.empty()) {
      const std::uint32_t number = active_.front();
      FlowQueue& queue = queues_[number];
      const PacketId first = queue.packets.front();
      if (first != kNone && port.pool[first].size_bytes <= queue.deficit) {
        queue.deficit -= port.pool[first].size_bytes;
        (void)queue.packets.pop_front(port.pool);
        if (queue.packets.empty()) active_.pop_front(queues_);
        return first;
      }
      active_.pop_front(queues_);
      if (first == kNone) continue;
      queue.deficit += quantum_;
      active_.push_back(queues_, number);
    }
    return kNone;
  }

  [[nodiscard]] bool make_room(PacketId /*newcomer*/, PortNow& port) {
    auto* const found = active_.longest(queues_);
    if (found == nullptr || found->packets.empty()) return false;
    PacketList& longest = found->packets;
    port.push_out(longest.pop_back(port.pool));
    return true;
  }

 private:
  std::int64_t quantum_;
  FlowQueues<FlowQueue> queues_;
  Turns<FlowQueue> active_;
};

template QueueKind kind_of<Drr>();

}  // namespace fabric
