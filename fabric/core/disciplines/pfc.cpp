// The queue of a lossless network: a FIFO that sends nothing while its neighbour has stopped it by a pause frame
// (priority flow control with one class: IEEE 802.1Qbb). Who stops whom is in pause_frames.hpp.
#include <array>
#include <stdexcept>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"

namespace fabric {

class Pfc {
 public:
  static constexpr std::string_view kName = "pfc";
  static constexpr bool kLossless = true;
  static constexpr std::array kSettings{
      QueueSetting{"xoff_bytes", "bytes", 1, 1e12, 60'000, true, "held for one link where its sender is stopped"},
      QueueSetting{"xon_bytes", "bytes", 0, 1e12, 54'000, true, "held for one link where its sender goes on"},
      QueueSetting{"headroom_bytes", "bytes", 0, 1e12, 100'000, true, "room for what arrives until it has stopped"}};

  explicit Pfc(const QueueSettings& settings) {
    if (settings["xon_bytes"] < settings["xoff_bytes"]) return;
    throw std::invalid_argument("a sender is stopped above where it goes on: xoff_bytes must be larger than xon_bytes");
  }

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    packets_.push_back(port.pool, id);
    return true;
  }
  [[nodiscard]] PacketId next(PortNow& port) { return packets_.pop_front(port.pool); }

  // Calls `see(packet)` for all packets that wait.
  template <class See>
  void each(const PacketPool& pool, See see) const {
    packets_.each(pool, see);
  }

 private:
  PacketList packets_;
};

template QueueKind kind_of<Pfc>();

}  // namespace fabric
