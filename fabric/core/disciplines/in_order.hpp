// First come, first served, one departure at a time: for ports whose departures cannot be known on arrival, because
// they follow delivery opportunities (opportunities.hpp). Other FIFOs cost one event less per hop (port.hpp).
#pragma once

#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/packet.hpp"

namespace fabric {

class InOrder {
 public:
  static constexpr std::string_view kName = "in-order";

  void push(PacketPool& pool, PacketId id) { packets_.push_back(pool, id); }
  [[nodiscard]] PacketId pop(const PacketPool& pool) { return packets_.empty() ? kNone : packets_.pop_front(pool); }
  [[nodiscard]] static PacketId give_way(const PacketPool& /*pool*/, PacketId /*newcomer*/) { return kNone; }

 private:
  PacketList packets_;
};

}  // namespace fabric
