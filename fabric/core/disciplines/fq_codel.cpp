// FQ-CoDel (RFC 8290): flows in queues of their own, each under CoDel, which take turns by bytes. A flow that comes back
// after its queue was empty is served first, so that sparse flows do not wait for bulk traffic.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/disciplines/codel.hpp"
#include "core/disciplines/flow_queues.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class FqCoDel {
  struct Queue : FlowQueue {
    CoDelState codel;
  };

 public:
  static constexpr std::string_view kName = "fq_codel";
  static constexpr bool kReadsFlow = true;
  static constexpr std::size_t kFlowBytes = FlowQueues<Queue>::kBytes;
  static constexpr std::array kSettings{kFlowQueues, kQuantum, kCoDelTarget, kCoDelInterval, kMarkInstead};

  explicit FqCoDel(const QueueSettings& settings)
      : parameters_(settings), quantum_(settings.count("quantum_bytes")), queues_(settings.count("flows")) {}

  // Section 4.1.
  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    new_.take(queues_, id, port, quantum_);
    return true;
  }

  // Section 4.2.
  [[nodiscard]] PacketId next(PortNow& port) {
    while (!new_.empty() || !old_.empty()) {
      const bool is_new = !new_.empty();
      Turns<Queue>& turns = is_new ? new_ : old_;
      const std::uint32_t number = turns.front();
      Queue& queue = queues_[number];
      if (queue.deficit <= 0) {
        queue.deficit += quantum_;
        turns.pop_front(queues_);
        old_.push_back(queues_, number);
        continue;
      }
      const PacketId id = queue.codel.next(queue.packets, port, parameters_);
      if (id != kNone) {
        queue.deficit -= port.pool[id].size_bytes;
        return id;
      }
      turns.pop_front(queues_);
      if (is_new) old_.push_back(queues_, number);  // else a flow could stay new by leaving its queue empty in between
    }
    return kNone;
  }

  // Section 4.1: up to 64 packets or half of the bytes leave the head of the longest queue at once.
  [[nodiscard]] bool make_room(PacketId /*newcomer*/, PortNow& port) {
    auto* const found = old_.longest(queues_, new_.longest(queues_));
    if (found == nullptr || found->packets.empty()) return false;
    PacketList& longest = found->packets;
    const std::uint64_t enough = longest.bytes() / 2;
    for (int left = kBatch; left > 0 && longest.bytes() > enough; --left) port.push_out(longest.pop_front(port.pool));
    return true;
  }

 private:
  static constexpr int kBatch = 64;

  CoDelParameters parameters_;
  std::int64_t quantum_;
  FlowQueues<Queue> queues_;
  Turns<Queue> new_;
  Turns<Queue> old_;
};

template QueueKind kind_of<FqCoDel>();

}  // namespace fabric
