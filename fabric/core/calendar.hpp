// The event queue: a calendar of equal time slots (Brown, CACM 1988) with a heap for what lies beyond
// its horizon. Pushing and popping cost O(1) while most events fall inside the horizon.
//
// Events with equal due times leave in the order they were pushed. An event pushed with a due time
// that has already been passed is the next to leave: it is late, never lost.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/units.hpp"

namespace fabric {

struct Event {
  Time due;
  std::uint32_t what;
};

class Calendar {
 public:
  // 2^slots_log2 slots of 2^width_log2 ps each.
  Calendar(int width_log2, int slots_log2)
      : width_log2_(width_log2),
        slots_(std::size_t{1} << slots_log2),
        occupied_(std::max<std::size_t>(1, slots_.size() / 64), 0) {}

  void push(Time due, std::uint32_t what) {
    ++size_;
    const std::int64_t slot = due >> width_log2_;
    if (slot <= current_) {
      insert_into_current(Event{due, what});
    } else if (within_horizon(slot)) {
      append(slot, Event{due, what});
    } else {
      beyond_.push_back(Far{Event{due, what}, far_order_++});
      std::push_heap(beyond_.begin(), beyond_.end(), later);
    }
  }

  // Takes the earliest event due at or before `limit`. `limit` must not decrease between calls.
  bool pop_until(Time limit, Event& out) {
    while (true) {
      auto& slot = slots_[index(current_)];
      if (cursor_ < slot.size()) {
        if (slot[cursor_].due > limit) return false;
        out = slot[cursor_++];
        --size_;
        return true;
      }
      if (!advance(limit >> width_log2_)) return false;
    }
  }

  // Due time of the earliest event, kNever when there is none.
  [[nodiscard]] Time next_due() const {
    const auto& now = slots_[index(current_)];
    if (cursor_ < now.size()) return now[cursor_].due;
    const std::int64_t next = next_occupied();
    if (next < 0) return beyond_.empty() ? kNever : beyond_.front().event.due;
    const auto& slot = slots_[index(next)];
    return std::min_element(slot.begin(), slot.end(), earlier)->due;
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Far {
    Event event;
    std::uint64_t order;
  };

  static bool earlier(const Event& a, const Event& b) { return a.due < b.due; }
  static bool later(const Far& a, const Far& b) {
    return a.event.due != b.event.due ? a.event.due > b.event.due : a.order > b.order;
  }

  [[nodiscard]] std::size_t index(std::int64_t slot) const {
    return static_cast<std::size_t>(slot) & (slots_.size() - 1);
  }

  // Of a slot that is not behind the current one.
  [[nodiscard]] bool within_horizon(std::int64_t slot) const {
    return slot - current_ < static_cast<std::int64_t>(slots_.size());
  }

  void append(std::int64_t slot, const Event& event) {
    const std::size_t i = index(slot);
    slots_[i].push_back(event);
    occupied_[i / 64] |= std::uint64_t{1} << (i % 64);
  }

  void insert_into_current(const Event& event) {
    auto& slot = slots_[index(current_)];
    const auto begin = slot.begin() + static_cast<std::ptrdiff_t>(cursor_);
    slot.insert(std::upper_bound(begin, slot.end(), event, earlier), event);
  }

  // Absolute number of the next slot after the current one that holds events, -1 when none does.
  [[nodiscard]] std::int64_t next_occupied() const {
    const std::size_t count = slots_.size();
    const std::size_t words = occupied_.size();
    const std::size_t start = index(current_ + 1);
    for (std::size_t step = 0; step <= words; ++step) {
      const std::size_t word = (start / 64 + step) % words;
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

  // Moves to the next slot with events, no further than `last`. False when there is none up to there.
  bool advance(std::int64_t last) {
    if (current_ >= last) return false;
    clear_current();
    const std::int64_t next = next_occupied();
    const std::int64_t far =
        beyond_.empty() ? std::int64_t{-1} : beyond_.front().event.due >> width_log2_;
    std::int64_t target = last;
    if (next >= 0) target = std::min(target, next);
    if (far >= 0) target = std::min(target, far);
    current_ = target;
    pull_in();
    auto& slot = slots_[index(current_)];
    occupied_[index(current_) / 64] &= ~(std::uint64_t{1} << (index(current_) % 64));
    sort(slot);
    return current_ < last || !slot.empty();
  }

  void clear_current() {
    slots_[index(current_)].clear();
    cursor_ = 0;
  }

  // Events the horizon has reached move from the heap into their slots.
  void pull_in() {
    while (!beyond_.empty() && within_horizon(beyond_.front().event.due >> width_log2_)) {
      const Event event = beyond_.front().event;
      std::pop_heap(beyond_.begin(), beyond_.end(), later);
      beyond_.pop_back();
      append(event.due >> width_log2_, event);
    }
  }

  static void sort(std::vector<Event>& slot) {
    if (slot.size() > 32) {
      std::stable_sort(slot.begin(), slot.end(), earlier);
      return;
    }
    for (std::size_t i = 1; i < slot.size(); ++i) {
      const Event event = slot[i];
      std::size_t j = i;
      for (; j > 0 && event.due < slot[j - 1].due; --j) slot[j] = slot[j - 1];
      slot[j] = event;
    }
  }

  int width_log2_;
  std::vector<std::vector<Event>> slots_;
  std::vector<std::uint64_t> occupied_;  // never set for the current slot
  std::vector<Far> beyond_;
  std::uint64_t far_order_ = 0;
  std::int64_t current_ = 0;
  std::size_t cursor_ = 0;
  std::size_t size_ = 0;
};

}  // namespace fabric
