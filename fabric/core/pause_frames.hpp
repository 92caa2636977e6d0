// Who stops whom in a lossless network. A switch counts what it holds of each link that leads into it, packets in
// transmission included. At `xoff` it stops the port at the link's other end by a pause frame, at `xon` that port goes
// on. A frame takes the link's delay and the transmission of 64 bytes; it neither waits for other frames nor delays them,
// and a cut link still carries it. Until the sender has stopped, packets take the headroom: 2 * delay * rate and two
// packets. More than xoff + headroom is dropped. A port that is stopped ends the packet that it is sending.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/disciplines/queue.hpp"
#include "core/units.hpp"

namespace fabric {

inline constexpr std::uint64_t kPauseFrameBytes = 64;

class Ingresses {
 public:
  Ingresses(const QueueSettings& settings, std::size_t ports)
      : xoff_(static_cast<std::uint64_t>(settings["xoff_bytes"])), xon_(static_cast<std::uint64_t>(settings["xon_bytes"])),
        limit_(xoff_ + static_cast<std::uint64_t>(settings["headroom_bytes"])), links_(ports) {}

  // Of the link behind the port `from`.
  [[nodiscard]] bool has_room(PortId from, std::uint64_t bytes) const { return links_[from].bytes + bytes <= limit_; }
  // Returns whether `from` must stop.
  [[nodiscard]] bool take(PortId from, std::uint64_t bytes) {
    Link& link = links_[from];
    link.bytes += bytes;
    if (link.stopped || link.bytes < xoff_) return false;
    link.stopped = true;
    return true;
  }
  // Returns whether `from` may go on.
  [[nodiscard]] bool give_back(PortId from, std::uint64_t bytes) {
    Link& link = links_[from];
    link.bytes -= bytes;
    if (!link.stopped || link.bytes > xon_) return false;
    link.stopped = false;
    return true;
  }
  [[nodiscard]] bool stops(PortId from) const { return links_[from].stopped; }

  // Bytes, by the port that they came through and the stopped port in which they wait.
  using Waiting = std::map<std::pair<PortId, PortId>, std::uint64_t>;

  // Ports that never go on: more than `xon` of what the far end holds for each waits in others of them. Without drops
  // nothing can end this, whatever is under way. `stopped` is in order.
  [[nodiscard]] std::vector<PortId> deadlocked(std::vector<PortId> stopped, const Waiting& waiting) const {
    for (std::size_t before = 0; before != stopped.size();) {
      before = stopped.size();
      const std::vector<PortId> those = stopped;
      std::erase_if(stopped, [&](PortId port) {
        std::uint64_t stuck = 0;
        for (auto at = waiting.lower_bound({port, 0}); at != waiting.end() && at->first.first == port; ++at) {
          if (std::ranges::binary_search(those, at->first.second)) stuck += at->second;
        }
        return stuck <= xon_;
      });
    }
    return stopped;
  }

 private:
  struct Link {
    std::uint64_t bytes = 0;  // of packets that came over it and have not left
    bool stopped = false;
  };

  std::uint64_t xoff_;
  std::uint64_t xon_;
  std::uint64_t limit_;
  std::vector<Link> links_;  // by the port that transmits on it
};

}  // namespace fabric
