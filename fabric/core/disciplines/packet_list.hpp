// Packets that wait outside the calendar, in order, linked through their descriptors. Each descriptor has the packet
// before XORed with the one behind (kNone: none), so that packets leave at both ends at once.
#pragma once

#include <cstdint>

#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class PacketList {
 public:
  [[nodiscard]] bool empty() const { return first_ == kNone; }
  [[nodiscard]] PacketId front() const { return first_; }
  [[nodiscard]] std::uint32_t pkts() const { return pkts_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  void push_back(PacketPool& pool, PacketId id) {
    Packet& packet = pool[id];
    packet.next_in_slot = last_ ^ kNone;
    if (empty()) first_ = id;
    else pool[last_].next_in_slot ^= kNone ^ id;
    last_ = id;
    ++pkts_;
    bytes_ += packet.size_bytes;
  }

  // kNone if it is empty.
  [[nodiscard]] PacketId pop_front(PacketPool& pool) {
    const PacketId id = first_;
    if (id != kNone) take(pool, first_, last_);
    return id;
  }
  // The list must not be empty.
  [[nodiscard]] PacketId pop_back(PacketPool& pool) {
    const PacketId id = last_;
    take(pool, last_, first_);
    return id;
  }

  // Calls `see(packet)` for all packets, in order.
  template <class See>
  void each(const PacketPool& pool, See see) const {
    PacketId before = kNone;
    for (PacketId id = first_; id != kNone;) {
      see(pool[id]);
      const PacketId behind = pool[id].next_in_slot ^ before;
      before = id;
      id = behind;
    }
  }

 private:
  void take(PacketPool& pool, PacketId& end, PacketId& other_end) {
    const PacketId id = end;
    end = pool[id].next_in_slot ^ kNone;
    if (end == kNone) other_end = kNone;
    else pool[end].next_in_slot ^= id ^ kNone;
    --pkts_;
    bytes_ -= pool[id].size_bytes;
  }

  PacketId first_ = kNone;
  PacketId last_ = kNone;
  std::uint32_t pkts_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace fabric
