// A mark for what finds so many packets queued, by the length it finds, as DCTCP's switches do (Alizadeh et al.,
// SIGCOMM 2010, section 3.1).
#pragma once

#include <cstdint>

#include "core/disciplines/queue_length.hpp"
#include "core/packet.hpp"

namespace fabric {

struct EcnThreshold {
  std::uint32_t pkts = 0;  // 0: never

  // Whether the packet is marked here. One that is not capable or marked already is left as it is.
  [[nodiscard]] bool marks(Packet& packet, QueueLength queue) const {
    if (pkts == 0 || queue.pkts < pkts || packet.ecn == Ecn::not_ect || packet.ecn == Ecn::ce) return false;
    packet.ecn = Ecn::ce;
    return true;
  }
};

}  // namespace fabric
