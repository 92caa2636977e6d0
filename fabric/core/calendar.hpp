// The event queue: a calendar of equal time slots (Brown, CACM 1988), with a heap for events beyond its horizon. A slot
// is a list of chunks of eight-byte events. It is appended to, and read once, when its time comes: its events are then
// sorted into the batch, from which memory is prefetched.
//
// Events with equal due times leave in the order in which they were pushed. An event pushed with a due time in the past
// leaves next: it is late, never lost.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/memory.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

class Calendar {
 public:
  // 2^slots_log2 slots of 2^width_log2 ps each; a slot lasts less than 2^32 ps.
  Calendar(int width_log2, int slots_log2)
      : width_log2_(width_log2),
        slots_(std::size_t{1} << slots_log2),
        last_slot_(slots_.size() - 1),
        occupied_(std::max<std::size_t>(1, slots_.size() / 64), 0) {}

  // From now on the slot after the limit may be sorted, too. That pays where limits are close to one another: the
  // first events after a limit are then in the cache.
  void look_beyond_limits() { beyond_limit_ = kSpan; }

  // From now on memory is prefetched even if few events wait: packets wait elsewhere, too.
  void always_prefetch() { in_cache_ = kFewest; }

  // The descriptor's due time must be set.
  void push(const PacketPool& pool, PacketId id) { push(pool[id].due, id); }
  void push(Time due, PacketId id) {
    const std::int64_t slot = due >> width_log2_;
    ++size_;
    if (static_cast<std::uint64_t>(slot - current_ - 1) < last_slot_) [[likely]] return append(due, id, slot);
    push_elsewhere({due, id}, slot);
  }

  // Removes the earliest event due at or before `limit`; kNone if there is none. `limit` must not decrease between
  // calls. Calls `ahead.first(id)` well before an event leaves, then `ahead.far(id)`, and `ahead.near(id)` just before.
  template <class Ahead>
  PacketId pop_until(Time limit, const Ahead& ahead) {
    if (end_ - cursor_ <= wanted() && current_ < last_to_sort(limit)) sort_until(limit);
    if (cursor_ == end_) return kNone;
    const Entry* next = batch_.data() + cursor_;
    if (next->due > limit) return kNone;
    if (prefetches()) {
      const std::size_t last = end_ - cursor_ - 1;
      if (kAhead <= last) ahead.first(next[kAhead].id);
      if (kFar <= last) ahead.far(next[kFar].id);
      if (kNear <= last && size_ > kNearEnough) ahead.near(next[kNear].id);
    }
    ++cursor_;
    --size_;
    return next->id;
  }

  // Due time of the event that has just left.
  [[nodiscard]] Time left_at() const { return batch_[cursor_ - 1].due; }

  // Due time of the earliest event, kNever when there is none.
  [[nodiscard]] Time next_due() const {
    if (cursor_ < end_) return batch_[cursor_].due;
    const std::int64_t next = next_occupied();
    Time earliest = beyond_.empty() ? kNever : beyond_.front().due;
    if (next < 0) return earliest;
    each_backwards(slots_[index(next)], [&](const Event& event) {
      earliest = std::min(earliest, (next << width_log2_) + event.offset);
    });
    return earliest;
  }

  // A time before which nothing is due, mostly that of the earliest event. It is found at once.
  [[nodiscard]] Time nothing_before() const {
    if (cursor_ < end_) return batch_[cursor_].due;
    const std::int64_t next = next_occupied();
    const Time slot = next < 0 ? kNever : next << width_log2_;
    return beyond_.empty() ? slot : std::min(slot, beyond_.front().due);
  }

  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  // Distances, in events before an event leaves, at which its packet is prefetched, and then what that leads to.
  static constexpr std::size_t kAhead = 16;
  static constexpr std::size_t kFar = 8;
  static constexpr std::size_t kNear = 4;
  // No slot is sorted that is more than one after the next event's: new events due before its end are inserted singly.
  static constexpr std::int64_t kSpan = 1;
  // Up to this many waiting events, all that they need stays in the cache without prefetching; up to the second number,
  // what that leads to is near enough, and looking for it costs more than it saves.
  static constexpr std::size_t kInCache = 4096;
  static constexpr std::size_t kNearEnough = 65536;
  static constexpr std::size_t kFewest = 256;  // worth looking ahead of
  static constexpr std::size_t kMostPassed = 512;
  static constexpr std::size_t kMostAtOnce = 32;
  static constexpr std::uint32_t kFew = 12;

  struct Entry {
    Time due;
    PacketId id;
  };
  struct Far {
    Time due;
    std::uint64_t order;
    PacketId id;
  };
  struct Event {
    std::uint32_t offset;  // from the beginning of its slot
    PacketId id;
  };
  struct alignas(64) Chunk {
    static constexpr std::uint32_t kEvents = 32;
    std::array<Event, kEvents> events;

    void prefetch() const {
      const auto* begin = reinterpret_cast<const char*>(this);
      for (std::size_t line = 0; line < sizeof(Chunk); line += 64) fabric::prefetch(begin + line);
    }
  };
  struct Slot {
    std::uint32_t chunk = kNone;  // the last
    std::uint32_t events = 0;
  };

  static bool earlier(const Entry& a, const Entry& b) { return a.due < b.due; }
  static bool later(const Far& a, const Far& b) { return a.due != b.due ? a.due > b.due : a.order > b.order; }

  [[nodiscard]] std::size_t index(std::int64_t slot) const { return static_cast<std::size_t>(slot) & last_slot_; }

  // Seldom called, and apart from `push` so that this stays short.
  [[gnu::noinline]] void push_elsewhere(const Entry& entry, std::int64_t slot) {
    if (slot <= current_) return insert_into_batch(entry);
    beyond_.push_back({entry.due, far_order_++, entry.id});
    std::push_heap(beyond_.begin(), beyond_.end(), later);
  }

  void append(Time due, PacketId id, std::int64_t number) {
    const std::size_t i = index(number);
    Slot& slot = slots_[i];
    const std::uint32_t place = slot.events++ % Chunk::kEvents;
    if (place == 0) [[unlikely]] begin_chunk(i);
    chunks_[slot.chunk].events[place] = {static_cast<std::uint32_t>(due - (number << width_log2_)), id};
  }

  [[gnu::noinline]] void begin_chunk(std::size_t slot) {
    const std::uint32_t fresh = new_chunk();
    before_[fresh] = slots_[slot].chunk;
    slots_[slot].chunk = fresh;
    occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }

  std::uint32_t new_chunk() {
    if (free_ != kNone) {
      const std::uint32_t out = free_;
      free_ = before_[out];
      return out;
    }
    chunks_.emplace_back();
    before_.push_back(kNone);
    return static_cast<std::uint32_t>(chunks_.size() - 1);
  }

  // Frees this chunk and all before it.
  void free_chunks(std::uint32_t at) {
    while (at != kNone) {
      const std::uint32_t before = before_[at];
      before_[at] = free_;
      free_ = at;
      at = before;
    }
  }

  // Visits all events of a slot, the last first.
  template <class Visit>
  void each_backwards(const Slot& slot, Visit visit) const {
    std::uint32_t in_chunk = slot.events == 0 ? 0 : (slot.events - 1) % Chunk::kEvents + 1;
    for (std::uint32_t at = slot.chunk; at != kNone; in_chunk = Chunk::kEvents) {
      const Chunk& chunk = chunks_[at];
      at = before_[at];
      if (at != kNone) chunks_[at].prefetch();
      while (in_chunk != 0) visit(chunk.events[--in_chunk]);
    }
  }

  void insert_into_batch(const Entry& entry) {
    if (cursor_ >= kMostPassed && cursor_ * 2 >= end_) drop_passed();
    Entry* const end = room_for(1);
    Entry* const place = std::upper_bound(batch_.data() + cursor_, end, entry, earlier);
    std::move_backward(place, end, end + 1);
    *place = entry;
    ++end_;
  }

  // Where the batch ends, with room for `more` events.
  Entry* room_for(std::size_t more) {
    if (end_ + more > batch_.size()) batch_.resize(std::max(2 * batch_.size(), end_ + more));
    return batch_.data() + end_;
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

  [[nodiscard]] bool prefetches() const { return size_ > in_cache_; }
  [[nodiscard]] std::size_t wanted() const { return prefetches() ? kAhead : 0; }

  // The last slot whose events may be in the batch by now.
  [[nodiscard]] std::int64_t last_to_sort(Time limit) const {
    const std::int64_t last = limit >> width_log2_;
    return cursor_ == end_ ? last : std::min(last + beyond_limit_, (batch_[cursor_].due >> width_log2_) + kSpan);
  }

  // Fills the batch from the next slots with events.
  void sort_until(Time limit) {
    if (cursor_ * 2 >= end_) drop_passed();
    while (end_ - cursor_ <= wanted()) {
      const std::int64_t end = last_to_sort(limit);
      if (current_ >= end) return;
      const std::int64_t next = next_occupied();
      const std::int64_t far = beyond_.empty() ? std::int64_t{-1} : beyond_.front().due >> width_log2_;
      std::int64_t target = end;
      if (next >= 0) target = std::min(target, next);
      if (far >= 0) target = std::min(target, far);
      current_ = target;
      if (!beyond_.empty()) pull_in();
      take_current();
    }
  }

  void drop_passed() {
    std::move(batch_.data() + cursor_, batch_.data() + end_, batch_.data());
    end_ -= cursor_;
    cursor_ = 0;
  }

  // Moves events from the current slot to the batch.
  void take_current() {
    const std::size_t i = index(current_);
    const Slot slot = slots_[i];
    if (slot.events == 0) return;
    Entry* const to = room_for(slot.events);
    if (slot.events <= kFew) {
      take_few(slot, to);
    } else {
      take_many(slot, to);
    }
    end_ += slot.events;
    free_chunks(slot.chunk);
    slots_[i] = {};
    occupied_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  }

  void take_few(const Slot& slot, Entry* to) {
    const Time start = current_ << width_log2_;
    const Chunk& chunk = chunks_[slot.chunk];
    for (std::size_t i = 0; i < slot.events; ++i) {
      put_in_order({start + chunk.events[i].offset, chunk.events[i].id}, to, to + i);
    }
  }

  // Distributes events over parts of the slot, about one part per event, then sorts them within the parts. The last
  // come first, so each part is filled from its end.
  void take_many(const Slot& slot, Entry* to) {
    const int shift = std::max(0, width_log2_ - static_cast<int>(std::bit_width(slot.events)));
    counts_.assign(std::size_t{1} << (width_log2_ - shift), 0);
    std::uint32_t* const counts = counts_.data();
    each_backwards(slot, [=](const Event& event) { ++counts[event.offset >> shift]; });
    std::uint32_t most = 0;
    std::uint32_t end = 0;
    for (std::uint32_t& count : counts_) {
      most = std::max(most, count);
      count = end += count;
    }
    const Time start = current_ << width_log2_;
    each_backwards(slot, [=](const Event& event) {
      to[--counts[event.offset >> shift]] = {start + event.offset, event.id};
    });
    if (most > kMostAtOnce) {
      std::stable_sort(to, to + slot.events, earlier);
    } else {
      for (Entry* at = to + 1; at < to + slot.events; ++at) put_in_order(*at, to, at);
    }
  }

  // Puts the entry into a free place, or into one before that whose entries are not earlier.
  static void put_in_order(Entry entry, const Entry* first, Entry* place) {
    for (; place > first && entry.due < place[-1].due; --place) *place = place[-1];
    *place = entry;
  }

  // Moves events that the horizon has reached from the heap into their slots.
  void pull_in() {
    const std::int64_t horizon = current_ + static_cast<std::int64_t>(slots_.size());
    while (!beyond_.empty() && beyond_.front().due >> width_log2_ < horizon) {
      const Far far = beyond_.front();
      std::pop_heap(beyond_.begin(), beyond_.end(), later);
      beyond_.pop_back();
      append(far.due, far.id, far.due >> width_log2_);
    }
  }

  int width_log2_;
  std::vector<Slot, HugePages<Slot>> slots_;
  std::size_t last_slot_;
  std::vector<std::uint64_t> occupied_;
  std::vector<Chunk, HugePages<Chunk>> chunks_;
  std::vector<std::uint32_t> before_;  // the chunk of the same slot that was full before this one was begun
  std::uint32_t free_ = kNone;  // chunk
  std::vector<Far> beyond_;
  std::vector<Entry> batch_;  // of all slots up to the current one, in order, from `cursor_` to `end_`
  std::vector<std::uint32_t> counts_;
  std::uint64_t far_order_ = 0;
  std::int64_t current_ = -1;
  std::int64_t beyond_limit_ = 0;
  std::size_t in_cache_ = kInCache;
  std::size_t cursor_ = 0;
  std::size_t end_ = 0;
  std::size_t size_ = 0;
};

}  // namespace fabric
