// A FIFO list of packets that wait outside the calendar, linked through their descriptors.
#pragma once

#include <cstdint>

#include "core/packet.hpp"
#include "core/memory.hpp"
#include "core/units.hpp"

namespace fabric {

class PacketList {
 public:
  [[nodiscard]] bool empty() const { return first_ == kNone; }
  [[nodiscard]] PacketId front() const { return first_; }
  [[nodiscard]] std::uint32_t pkts() const { return pkts_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  void push_back(PacketPool& pool, PacketId id) {
    pool[id].next_in_slot = kNone;
    (empty() ? first_ : pool[last_].next_in_slot) = id;
    last_ = id;
    ++pkts_;
    bytes_ += pool[id].size_bytes;
  }

  // kNone if it is empty. Fetches the packet that is now in front: it leaves next.
  [[nodiscard]] PacketId pop_front(const PacketPool& pool) {
    const PacketId id = first_;
    if (id == kNone) return kNone;
    first_ = pool[id].next_in_slot;
    if (first_ != kNone) prefetch_to_write(&pool[first_]);
    --pkts_;
    bytes_ -= pool[id].size_bytes;
    return id;
  }

  // The list must not be empty. The time grows with its length.
  [[nodiscard]] PacketId pop_back(PacketPool& pool) {
    const PacketId id = last_;
    if (first_ == id) return pop_front(pool);
    PacketId before = first_;
    while (pool[before].next_in_slot != id) before = pool[before].next_in_slot;
    pool[before].next_in_slot = kNone;
    last_ = before;
    --pkts_;
    bytes_ -= pool[id].size_bytes;
    return id;
  }

  // Calls `see(packet)` for all packets, in order.
  template <class See>
  void each(const PacketPool& pool, See see) const {
    for (PacketId id = first_; id != kNone; id = pool[id].next_in_slot) see(pool[id]);
  }

 private:
  PacketId first_ = kNone;
  PacketId last_ = kNone;
  std::uint32_t pkts_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace fabric
