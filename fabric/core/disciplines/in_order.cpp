// First come, first served, one departure at a time: for ports whose departures cannot be known on arrival, because
// they follow delivery opportunities (opportunities.hpp). Other FIFOs cost one event less per hop (port.hpp).
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"

namespace fabric {

class InOrder {
 public:
  static constexpr std::string_view kName = "in-order";

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    packets_.push_back(port.pool, id);
    return true;
  }
  [[nodiscard]] PacketId next(PortNow& port) { return packets_.pop_front(port.pool); }

 private:
  PacketList packets_;
};

template QueueKind kind_of<InOrder>();

}  // namespace fabric
