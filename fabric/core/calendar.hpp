// The event queue: a calendar of equal time slots (Brown, CACM 1988) with a heap for what lies beyond its
// horizon. An event is a packet descriptor with its due time in it; a slot is a list through descriptors, so
// the calendar itself is one index a slot, and reading ahead in it brings the packets into the cache.
//
// Events with equal due times leave in the order they were pushed. An event pushed with a due time that has
// already been passed is the next to leave: it is late, never lost.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class Calendar {
 public:
  // 2^slots_log2 slots of 2^width_log2 ps each.
  Calendar(int width_log2, int slots_log2)
      : width_log2_(width_log2),
        slots_(std::size_t{1} << slots_log2, kNone),
        occupied_(std::max<std::size_t>(1, slots_.size() / 64), 0) {}

  // The descriptor's due time is set.
  void push(PacketPool& pool, PacketId id) {
    Packet& packet = pool[id];
    const std::int64_t slot = packet.due >> width_log2_;
    if (slot <= current_) [[unlikely]] {
      insert_into_batch({packet.due, id});
    } else if (slot - current_ < static_cast<std::int64_t>(slots_.size())) [[likely]] {
      link(packet, id, slot);
    } else {
      beyond_.push_back({packet.due, far_order_++, id});
      std::push_heap(beyond_.begin(), beyond_.end(), later);
    }
    ++size_;
  }

  // Takes the earliest event due at or before `limit`, kNone where there is none. `limit` must not decrease
  // between calls. Of events to come `ahead.far(id)` is told first, `ahead.near(id)` just before they leave.
  template <class Ahead>
  PacketId pop_until(PacketPool& pool, Time limit, const Ahead& ahead) {
    if (batch_.size() - cursor_ < kAhead && current_ < limit >> width_log2_) advance(pool, limit >> width_log2_, ahead);
    if (cursor_ == batch_.size()) return kNone;
    const Entry& entry = batch_[cursor_];
    if (entry.due > limit) return kNone;
    if (cursor_ + kNear < batch_.size()) ahead.near(batch_[cursor_ + kNear].id);
    ++cursor_;
    --size_;
    return entry.id;
  }

  // Due time of the earliest event, kNever when there is none.
  [[nodiscard]] Time next_due(const PacketPool& pool) const {
    if (cursor_ < batch_.size()) return batch_[cursor_].due;
    const std::int64_t next = next_occupied();
    if (next < 0) return beyond_.empty() ? kNever : beyond_.front().due;
    Time earliest = kNever;
    for (PacketId id = slots_[index(next)]; id != kNone; id = pool[id].next_in_slot) {
      earliest = std::min(earliest, pool[id].due);
    }
    return earliest;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  // So many events are taken out of their slots ahead of time, and their packets fetched meanwhile.
  static constexpr std::size_t kAhead = 24;
  static constexpr std::size_t kNear = 8;
  // But none from so many slots after the next one to leave: what is then due before it is inserted one by one.
  static constexpr std::int64_t kSpan = 64;
  static constexpr std::size_t kMostPassed = 512;

  struct Entry {
    Time due;
    PacketId id;
  };
  struct Far {
    Time due;
    std::uint64_t order;
    PacketId id;
  };

  static bool earlier(const Entry& a, const Entry& b) { return a.due < b.due; }
  static bool later(const Far& a, const Far& b) { return a.due != b.due ? a.due > b.due : a.order > b.order; }

  [[nodiscard]] std::size_t index(std::int64_t slot) const {
    return static_cast<std::size_t>(slot) & (slots_.size() - 1);
  }

  void link(Packet& packet, PacketId id, std::int64_t slot) {
    const std::size_t i = index(slot);
    packet.next_in_slot = slots_[i];
    slots_[i] = id;
    occupied_[i / 64] |= std::uint64_t{1} << (i % 64);
  }

  void insert_into_batch(const Entry& entry) {
    if (cursor_ >= kMostPassed) drop_passed();
    const auto begin = batch_.begin() + static_cast<std::ptrdiff_t>(cursor_);
    batch_.insert(std::upper_bound(begin, batch_.end(), entry, earlier), entry);
  }

  // Absolute number of the next slot after the current one that holds events, -1 when none does.
  [[nodiscard]] std::int64_t next_occupied() const {
    const std::size_t count = slots_.size();
    const std::size_t words = occupied_.size();
    const std::size_t start = index(current_ + 1);
    for (std::size_t step = 0; step <= words; ++step) {
      const std::size_t word = (start / 64 + step) & (words - 1);
      std::uint64_t bits = occupied_[word];
      if (step == 0) bits &= ~std::uint64_t{0} << (start % 64);
      if (step == words) bits &= (std::uint64_t{1} << (start % 64)) - 1;
      if (bits == 0) continue;
      const std::size_t found = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      const std::size_t ahead = (found + count - start) & (count - 1);
      return current_ + 1 + static_cast<std::int64_t>(ahead);
    }
    return -1;
  }

  // Fills the batch from the next slots with events, none later than `last`.
  template <class Ahead>
  void advance(PacketPool& pool, std::int64_t last, const Ahead& ahead) {
    if (cursor_ >= kMostPassed) drop_passed();
    while (batch_.size() - cursor_ < kAhead) {
      const std::int64_t end = cursor_ == batch_.size() ? last : std::min(last, (batch_[cursor_].due >> width_log2_) + kSpan);
      if (current_ >= end) return;
      const std::int64_t next = next_occupied();
      const std::int64_t far = beyond_.empty() ? std::int64_t{-1} : beyond_.front().due >> width_log2_;
      std::int64_t target = end;
      if (next >= 0) target = std::min(target, next);
      if (far >= 0) target = std::min(target, far);
      if (target / 64 != current_ / 64) read_ahead(pool, target);
      current_ = target;
      if (!beyond_.empty()) pull_in(pool);
      const std::size_t first = batch_.size();
      take_current(pool);
      for (std::size_t i = first; i < batch_.size(); ++i) ahead.far(batch_[i].id);
    }
  }

  void drop_passed() {
    batch_.erase(batch_.begin(), batch_.begin() + static_cast<std::ptrdiff_t>(cursor_));
    cursor_ = 0;
  }

  // Before 64 slots are gone through, the packets of the next 64 are fetched, and the second ones of these.
  void read_ahead(PacketPool& pool, std::int64_t slot) const {
    const std::size_t word = index(slot) / 64;
    const std::size_t next = (word + 1) & (occupied_.size() - 1);
    for (std::uint64_t bits = occupied_[next]; bits != 0; bits &= bits - 1) {
      __builtin_prefetch(&pool[slots_[next * 64 + static_cast<std::size_t>(std::countr_zero(bits))]], 1);
    }
    for (std::uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
      const PacketId second = pool[slots_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))]].next_in_slot;
      if (second != kNone) __builtin_prefetch(&pool[second], 1);
    }
  }

  // A slot's list has its last event first.
  void take_current(PacketPool& pool) {
    const std::size_t i = index(current_);
    const std::size_t first = batch_.size();
    for (PacketId id = slots_[i]; id != kNone; id = pool[id].next_in_slot) batch_.push_back({pool[id].due, id});
    if (batch_.size() == first) return;
    slots_[i] = kNone;
    occupied_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    std::reverse(batch_.begin() + static_cast<std::ptrdiff_t>(first), batch_.end());
    sort_from(first);
  }

  void sort_from(std::size_t first) {
    if (batch_.size() - first > 32) {
      std::stable_sort(batch_.begin() + static_cast<std::ptrdiff_t>(first), batch_.end(), earlier);
      return;
    }
    for (std::size_t i = first + 1; i < batch_.size(); ++i) {
      const Entry entry = batch_[i];
      std::size_t j = i;
      for (; j > first && entry.due < batch_[j - 1].due; --j) batch_[j] = batch_[j - 1];
      batch_[j] = entry;
    }
  }

  // Events the horizon has reached move from the heap into their slots.
  void pull_in(PacketPool& pool) {
    const std::int64_t horizon = current_ + static_cast<std::int64_t>(slots_.size());
    while (!beyond_.empty() && beyond_.front().due >> width_log2_ < horizon) {
      const PacketId id = beyond_.front().id;
      std::pop_heap(beyond_.begin(), beyond_.end(), later);
      beyond_.pop_back();
      link(pool[id], id, pool[id].due >> width_log2_);
    }
  }

  int width_log2_;
  std::vector<PacketId, HugePages<PacketId>> slots_;
  std::vector<std::uint64_t> occupied_;
  std::vector<Far> beyond_;
  std::vector<Entry> batch_;  // of all slots up to the current one, in order
  std::uint64_t far_order_ = 0;
  std::int64_t current_ = -1;
  std::size_t cursor_ = 0;
  std::size_t size_ = 0;
};

}  // namespace fabric
