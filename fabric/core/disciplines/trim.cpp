// The queue of an NDP switch (Handley et al., SIGCOMM 2017, section 3.1): a packet that finds the queue full loses its
// payload, not its header. Either it or the last packet of the queue is trimmed, as a coin decides, so that flows in
// phase are trimmed alike. Headers, and packets that are no longer than one, wait in a queue of their own, of which
// `ratio` are sent for each whole packet while both wait. Nothing is dropped unless the queue of headers is full.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"

namespace fabric {

class Trim {
 public:
  static constexpr std::string_view kName = "trim";
  static constexpr bool kTrims = true;
  static constexpr std::array kSettings{
      QueueSetting{"pkts", "packets", 1, 1e6, 8, true, "whole packets that wait"},
      QueueSetting{"header_pkts", "packets", 1, 1e6, 1125, true, "headers that wait"},
      QueueSetting{"header_bytes", "bytes", 1, 9000, 66, true, "size of a trimmed packet"},
      QueueSetting{"ratio", "", 1, 1e6, 10, true, "headers sent for each whole packet"}};

  explicit Trim(const QueueSettings& settings)
      : pkts_(settings.count("pkts")), header_pkts_(settings.count("header_pkts")),
        header_bytes_(static_cast<std::uint16_t>(settings.count("header_bytes"))), ratio_(settings.count("ratio")) {}

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    const bool header = port.pool[id].size_bytes <= header_bytes_;
    if (!header && whole_.pkts() < pkts_) {
      whole_.push_back(port.pool, id);
      return true;
    }
    if (headers_.pkts() >= header_pkts_) return false;
    if (header) {
      headers_.push_back(port.pool, id);
      return true;
    }
    PacketId trimmed = id;
    if (port.random.below(2) == 0) {
      trimmed = whole_.pop_back(port.pool);
      whole_.push_back(port.pool, id);
    }
    port.trim(trimmed, header_bytes_);
    headers_.push_back(port.pool, trimmed);
    return true;
  }

  [[nodiscard]] PacketId next(PortNow& port) {
    const bool header = !headers_.empty() && (whole_.empty() || in_turn_ < ratio_);
    in_turn_ = header && !whole_.empty() ? in_turn_ + 1 : 0;
    return (header ? headers_ : whole_).pop_front(port.pool);
  }

 private:
  std::uint32_t pkts_;
  std::uint32_t header_pkts_;
  std::uint16_t header_bytes_;
  std::uint32_t ratio_;
  std::uint32_t in_turn_ = 0;  // headers sent since the last whole packet, while one waited
  PacketList whole_;
  PacketList headers_;
};

template QueueKind kind_of<Trim>();

}  // namespace fabric
