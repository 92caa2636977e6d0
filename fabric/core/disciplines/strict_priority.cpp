// Strict priority: the packet of the highest IP precedence goes first, and packets of equal precedence in order of
// arrival. A transmission is never interrupted. A full queue makes room for a packet of higher precedence by dropping
// the latest packet of the lowest precedence.
//
// The precedence is the class selector, the upper three bits of DSCP (RFC 2474, section 4.2.2).
#include <array>
#include <cstddef>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"

namespace fabric {

class StrictPriority {
 public:
  static constexpr std::string_view kName = "priority";

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    classes_[precedence(port.pool[id])].push_back(port.pool, id);
    return true;
  }

  [[nodiscard]] PacketId next(PortNow& port) {
    for (auto each = classes_.rbegin(); each != classes_.rend(); ++each) {
      if (!each->empty()) return each->pop_front(port.pool);
    }
    return kNone;
  }

  [[nodiscard]] bool make_room(PacketId newcomer, PortNow& port) {
    for (std::size_t lower = 0; lower < precedence(port.pool[newcomer]); ++lower) {
      if (classes_[lower].empty()) continue;
      port.push_out(classes_[lower].pop_back(port.pool));
      return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t precedence(const Packet& packet) { return packet.dscp >> 3; }

  std::array<PacketList, 8> classes_{};
};

template QueueKind kind_of<StrictPriority>();

}  // namespace fabric
