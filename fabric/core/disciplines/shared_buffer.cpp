// A switch whose ports share one buffer, with dynamic thresholds (Choudhury and Hahne, IEEE/ACM ToN 6, 1998): a port
// takes a packet while its queue is shorter than alpha times the part of the buffer that is free. With n ports that are
// never empty each queue grows to alpha B / (1 + n alpha), and a part of the buffer stays free for others. The queue of
// a port is a FIFO.
#include <array>
#include <cstdint>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/disciplines/queue_length.hpp"
#include "core/packet.hpp"

namespace fabric {

class SharedBuffer {
 public:
  static constexpr std::string_view kName = "shared";
  static constexpr std::array kSettings{
      QueueSetting{"buffer_bytes", "bytes", 1514, 1e12, 4'000'000, true, "buffer of a switch, for all its ports"},
      QueueSetting{"alpha", "", 1e-3, 1e3, 1, false, "a queue's limit as a multiple of the free buffer"}};

  explicit SharedBuffer(const QueueSettings& settings)
      : buffer_bytes_(static_cast<std::uint64_t>(settings["buffer_bytes"])), alpha_(settings["alpha"]) {}

  // Packets in transmission take part of the buffer until they have left.
  [[nodiscard]] bool has_room(const Packet& packet, QueueLength queue, std::uint64_t switch_bytes) const {
    if (switch_bytes + packet.size_bytes > buffer_bytes_) return false;
    return static_cast<double>(queue.bytes) < alpha_ * static_cast<double>(buffer_bytes_ - switch_bytes);
  }
  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    packets_.push_back(port.pool, id);
    return true;
  }
  [[nodiscard]] PacketId next(PortNow& port) { return packets_.pop_front(port.pool); }

 private:
  std::uint64_t buffer_bytes_;
  double alpha_;
  PacketList packets_;
};

template QueueKind kind_of<SharedBuffer>();

}  // namespace fabric
