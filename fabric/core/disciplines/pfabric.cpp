// The queue of pFabric (Alizadeh et al., SIGCOMM 2013, section 4.2). It sends a packet of the flow with the smallest
// rank, and of that flow the earliest, so that no flow is starved by its own later packets. A full queue drops the
// packet with the largest rank; among equal ranks the latest, which is the newcomer before all others.
//
// Each half is also a discipline by itself, with a FIFO or drop-tail for the other, to measure what it contributes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/disciplines/queue.hpp"
#include "core/disciplines/queued_port.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

namespace detail {

// Queues are short (36 kB are 24 full packets), so both searches read a few cache lines from end to end.
template <bool schedules, bool drops>
class RankedQueue {
 public:
  static constexpr bool kReadsRank = true;

  [[nodiscard]] bool arrive(PacketId id, PortNow& port) {
    const Precedence& its = port.pool.precedence(id);
    waiting_.push_back({its.rank, its.flow, id});
    return true;
  }

  [[nodiscard]] PacketId next(PortNow& /*port*/) {
    if (waiting_.empty()) return kNone;
    if constexpr (!schedules) return take(0);
    std::size_t best = 0;
    for (std::size_t i = 1; i < waiting_.size(); ++i) {
      if (waiting_[i].rank < waiting_[best].rank) best = i;
    }
    for (std::size_t i = 0; i < best; ++i) {
      if (waiting_[i].flow == waiting_[best].flow) return take(i);
    }
    return take(best);
  }

  [[nodiscard]] bool make_room(PacketId newcomer, PortNow& port) {
    if (!drops || waiting_.empty()) return false;
    std::size_t worst = 0;
    for (std::size_t i = 1; i < waiting_.size(); ++i) {
      if (waiting_[i].rank >= waiting_[worst].rank) worst = i;
    }
    if (waiting_[worst].rank <= port.pool.precedence(newcomer).rank) return false;
    port.push_out(take(worst));
    return true;
  }

 private:
  struct Waiting {
    std::uint32_t rank;
    std::uint32_t flow;
    PacketId id;
  };

  PacketId take(std::size_t place) {
    const PacketId id = waiting_[place].id;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
    return id;
  }

  std::vector<Waiting> waiting_;  // in order of arrival
};

}  // namespace detail

class PFabric : public detail::RankedQueue<true, true> {
 public:
  static constexpr std::string_view kName = "pfabric";
};

class PFabricScheduling : public detail::RankedQueue<true, false> {
 public:
  static constexpr std::string_view kName = "pfabric_scheduling";
};

class PFabricDropping : public detail::RankedQueue<false, true> {
 public:
  static constexpr std::string_view kName = "pfabric_dropping";
};

template QueueKind kind_of<PFabric>();
template QueueKind kind_of<PFabricDropping>();
template QueueKind kind_of<PFabricScheduling>();

}  // namespace fabric
