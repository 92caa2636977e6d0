// A FIFO list of packets that wait outside the calendar, linked through their descriptors.
#pragma once

#include "core/packet.hpp"
#include "core/memory.hpp"
#include "core/units.hpp"

namespace fabric {

class PacketList {
 public:
  [[nodiscard]] bool empty() const { return first_ == kNone; }

  void push_back(PacketPool& pool, PacketId id) {
    pool[id].next_in_slot = kNone;
    (empty() ? first_ : pool[last_].next_in_slot) = id;
    last_ = id;
  }

  // The list must not be empty. Fetches the packet that is now in front: it leaves next.
  [[nodiscard]] PacketId pop_front(const PacketPool& pool) {
    const PacketId id = first_;
    first_ = pool[id].next_in_slot;
    if (first_ != kNone) prefetch_to_write(&pool[first_]);
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
    return id;
  }

 private:
  PacketId first_ = kNone;
  PacketId last_ = kNone;
};

}  // namespace fabric
