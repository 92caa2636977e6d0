// The sizes of the packets in a FIFO. Most queues hold packets of very few sizes, those of a full segment and of an
// acknowledgement: two bits per packet tell them apart, and the whole object is one cache line. A queue that is longer,
// or has more sizes, keeps them in a separate ring until it is empty.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/prefetch.hpp"

namespace fabric {

class alignas(64) QueuedSizes {
 public:
  // Places count on from the first packet ever queued. `count` packets are queued, `place` is the next one's.
  void push(std::uint64_t place, std::uint32_t count, std::uint16_t size) {
    std::size_t code = 0;
    while (code != known_.size() && known_[code] != size) ++code;
    if (code == known_.size() || count >= kPlaces) [[unlikely]] return push_other(place, count, size);
    std::uint64_t& word = codes_[place / 32 % codes_.size()];
    const auto shift = static_cast<unsigned>(place % 32 * 2);
    word = (word & ~(std::uint64_t{3} << shift)) | std::uint64_t{code} << shift;
  }

  // The size of a packet that is queued.
  [[nodiscard]] std::uint16_t at(std::uint64_t place) const {
    const std::uint16_t size = known_[codes_[place / 32 % codes_.size()] >> (place % 32 * 2) & 3];
    return size != 0 ? size : ring_[place & (ring_.size() - 1)];
  }

  void prefetch() const { prefetch_to_write(this); }

 private:
  static constexpr std::uint32_t kPlaces = 128;

  void push_other(std::uint64_t place, std::uint32_t count, std::uint16_t size) {
    if (count == 0) {
      ring_ = {};
      known_ = {};
    }
    if (ring_.empty() && count != kPlaces && size != 0) {
      const auto free = std::find(known_.begin(), known_.end(), 0);
      if (free != known_.end()) {
        *free = size;
        return push(place, count, size);
      }
    }
    if (ring_.empty() || count == ring_.size()) grow(place, count);
    ring_[place & (ring_.size() - 1)] = size;
  }

  void grow(std::uint64_t place, std::uint32_t count) {
    std::vector<std::uint16_t> wider(2 * std::max<std::size_t>(kPlaces, ring_.size()));
    for (std::uint64_t i = place - count; i != place; ++i) wider[i & (wider.size() - 1)] = at(i);
    ring_ = std::move(wider);
    known_ = {};
  }

  std::array<std::uint64_t, kPlaces / 32> codes_{};
  std::array<std::uint16_t, 4> known_{};  // none where all are in the ring
  std::vector<std::uint16_t> ring_;
};
static_assert(sizeof(QueuedSizes) == 64);

}  // namespace fabric
