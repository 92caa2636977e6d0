// CoDel (RFC 8289): a FIFO under the law of codel.hpp.
#include "core/disciplines/codel.hpp"

#include <array>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"

namespace fabric {

class CoDel {
 public:
  static constexpr std::string_view kName = "codel";
  static constexpr std::array kSettings{kCoDelTarget, kCoDelInterval, kMarkInstead};

  explicit CoDel(const QueueSettings& settings) : parameters_(settings) {}

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    packets_.push_back(port.pool, id);
    return true;
  }
  [[nodiscard]] PacketId next(PortNow& port) { return state_.next(packets_, port, parameters_); }

 private:
  CoDelParameters parameters_;
  PacketList packets_;
  CoDelState state_;
};

template QueueKind kind_of<CoDel>();

}  // namespace fabric
