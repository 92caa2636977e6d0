// Strict priority: the packet of the highest IP precedence goes first, and packets of equal precedence in order of
// arrival. A transmission is never interrupted. A full queue makes room for a packet of higher precedence by dropping
// the latest packet of the lowest precedence.
//
// The precedence is the class selector, the upper three bits of DSCP (RFC 2474, section 4.2.2).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/packet.hpp"

namespace fabric {

class StrictPriority {
 public:
  static constexpr std::string_view kName = "priority";

  void push(PacketPool& pool, PacketId id) { classes_[precedence(pool[id])].push_back(pool, id); }

  // Removes the next packet to send; kNone if there is none.
  [[nodiscard]] PacketId pop(PacketPool& pool) {
    for (auto each = classes_.rbegin(); each != classes_.rend(); ++each) {
      if (!each->empty()) return each->pop_front(pool);
    }
    return kNone;
  }

  // Removes a packet of lower precedence than the newcomer; kNone if there is none.
  [[nodiscard]] PacketId give_way(PacketPool& pool, PacketId newcomer) {
    for (std::size_t lower = 0; lower < precedence(pool[newcomer]); ++lower) {
      if (!classes_[lower].empty()) return classes_[lower].pop_back(pool);
    }
    return kNone;
  }

 private:
  static constexpr std::size_t precedence(const Packet& packet) { return packet.dscp >> 3; }

  std::array<PacketList, 8> classes_{};
};

}  // namespace fabric
