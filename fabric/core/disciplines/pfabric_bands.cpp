// What the CS244 2017 reproduction of pFabric ran instead of its queue: 16 FIFOs in strict priority, into which ranks
// fall linearly, the last one for the largest flow of the web search. A full queue drops the newcomer.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"

namespace fabric {

class PFabricBands {
 public:
  static constexpr std::string_view kName = "pfabric_bands";
  static constexpr bool kReadsRank = true;
  static constexpr std::size_t kBands = 16;
  static constexpr std::uint32_t kLargestFlow = 20'000 * 1460;

  static std::size_t band_of(std::uint32_t rank) {
    return std::min<std::size_t>(kBands - 1, rank / (kLargestFlow / std::uint32_t{kBands}));
  }

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    bands_[band_of(port.pool.precedence(id).rank)].push_back(port.pool, id);
    return true;
  }

  [[nodiscard]] PacketId next(PortNow& port) {
    for (PacketList& band : bands_) {
      if (!band.empty()) return band.pop_front(port.pool);
    }
    return kNone;
  }

 private:
  std::array<PacketList, kBands> bands_;
};

template QueueKind kind_of<PFabricBands>();

}  // namespace fabric
