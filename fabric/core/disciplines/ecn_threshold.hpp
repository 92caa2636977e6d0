// Marks a packet that finds this many packets queued or more, as DCTCP's switches do (Alizadeh et al., SIGCOMM 2010,
// section 3.1).
#pragma once

#include <cstdint>

#include "core/disciplines/queue_length.hpp"
#include "core/packet.hpp"

namespace fabric {

struct EcnThreshold {
  std::uint32_t pkts = 0;  // 0: never marks

  // Whether it marks the packet. Packets that are not ECN-capable, or already marked, stay as they are.
  [[nodiscard]] bool marks(Packet& packet, QueueLength queue) const {
    if (pkts == 0 || queue.pkts < pkts || packet.ecn == Ecn::not_ect || packet.ecn == Ecn::ce) return false;
    packet.ecn = Ecn::ce;
    return true;
  }
};

}  // namespace fabric
