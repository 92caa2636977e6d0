// The sizes of the packets in a FIFO. Most queues hold packets of very few sizes, those of a full segment and of an
// acknowledgement: two bits per packet tell them apart. A queue that is longer, or has more sizes, keeps them in a
// separate ring until it is empty.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/memory.hpp"

namespace fabric {

class QueuedSizes {
 public:
  // Places count on from the first packet ever queued. `count` packets are queued, `place` is the next one's.
  void push(std::uint64_t place, std::uint32_t count, std::uint16_t size) {
    const unsigned code = code_of(size);
    if (code == kUnknown || count >= kPlaces) [[unlikely]] return push_other(place, count, size);
    std::uint64_t& word = codes_[place / 32 % codes_.size()];
    const auto shift = static_cast<unsigned>(place % 32 * 2);
    word = (word & ~(std::uint64_t{3} << shift)) | std::uint64_t{code} << shift;
  }

  // The size of a packet that is queued.
  [[nodiscard]] std::uint16_t at(std::uint64_t place) const {
    const std::uint16_t size = known_[codes_[place / 32 % codes_.size()] >> (place % 32 * 2) & 3];
    return size != 0 ? size : ring_[place & (places_ - 1)];
  }

  void prefetch() const { prefetch_to_write(this); }

  static constexpr std::uint32_t kPlaces = 128;  // of packets whose sizes take two bits each

 private:
  static constexpr unsigned kUnknown = 4;

  // Without a branch, since sizes come in any order: compares all four in one word.
  [[nodiscard]] unsigned code_of(std::uint16_t size) const {
    constexpr std::uint64_t kOnes = 0x0001'0001'0001'0001;
    constexpr std::uint64_t kTops = kOnes << 15;
    const std::uint64_t differences = std::bit_cast<std::uint64_t>(known_) ^ size * kOnes;
    const std::uint64_t equal = (differences - kOnes) & ~differences & kTops;  // the lowest bit set is right
    return static_cast<unsigned>(std::countr_zero(equal)) / 16;
  }

  void push_other(std::uint64_t place, std::uint32_t count, std::uint16_t size) {
    if (count == 0) {
      ring_.reset();
      places_ = 0;
      known_ = {};
    }
    if (!ring_ && count != kPlaces && size != 0) {
      const auto free = std::find(known_.begin(), known_.end(), 0);
      if (free != known_.end()) {
        *free = size;
        return push(place, count, size);
      }
    }
    if (count >= places_) grow(place, count);
    ring_[place & (places_ - 1)] = size;
  }

  void grow(std::uint64_t place, std::uint32_t count) {
    const std::uint32_t places = 2 * std::max(kPlaces, places_);
    auto wider = std::make_unique<std::uint16_t[]>(places);
    for (std::uint64_t i = place - count; i != place; ++i) wider[i & (places - 1)] = at(i);
    ring_ = std::move(wider);
    places_ = places;
    known_ = {};
  }

  std::array<std::uint64_t, kPlaces / 32> codes_{};
  std::array<std::uint16_t, 4> known_{};  // none where all are in the ring
  std::unique_ptr<std::uint16_t[]> ring_;
  std::uint32_t places_ = 0;  // in the ring
};
static_assert(sizeof(QueuedSizes) == 56);

}  // namespace fabric
