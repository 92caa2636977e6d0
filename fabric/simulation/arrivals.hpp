// The segments that have arrived: the first missing one, and those beyond it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "simulation/segment.hpp"

namespace fabric {

class Arrivals {
 public:
  // The first segment that has not arrived.
  [[nodiscard]] Seq next() const { return next_; }
  // The number of segments beyond the first missing one.
  [[nodiscard]] std::uint32_t held() const { return held_; }

  [[nodiscard]] bool contains(Seq seq) const {
    const auto ahead = static_cast<std::int32_t>(seq - next_);
    if (ahead <= 0) return ahead < 0;
    return static_cast<std::size_t>(ahead) < words_.size() * 64 && has(seq);
  }

  // Returns false for a duplicate.
  bool add(Seq seq) {
    const auto ahead = static_cast<std::int32_t>(seq - next_);
    if (ahead < 0) return false;
    if (ahead == 0) {
      ++next_;
      if (held_ != 0) skip_held();
      return true;
    }
    while (static_cast<std::size_t>(ahead) >= words_.size() * 64) grow();
    std::uint64_t& word = words_[index(seq)];
    const std::uint64_t bit = std::uint64_t{1} << (seq % 64);
    if ((word & bit) != 0) return false;
    word |= bit;
    ++held_;
    return true;
  }

  // The run of held segments around this one, which is held.
  [[nodiscard]] SackBlock block_of(Seq seq) const {
    Seq first = seq;
    while (first - 1 != next_ && has(first - 1)) --first;
    Seq end = seq + 1;
    const Seq limit = next_ + static_cast<Seq>(words_.size() * 64);
    while (end != limit && has(end)) ++end;
    return {first, end};
  }

  // Brings into the cache what this segment's arrival will touch.
  void prefetch(Seq seq) const {
    if (!words_.empty()) prefetch_to_write(&words_[index(seq)]);
  }

  // Forgets all; from now on this is the first segment that has not arrived.
  void restart(Seq next) {
    next_ = next;
    held_ = 0;
    words_ = {};
  }

  // Nothing more is expected.
  void release() {
    if (held_ == 0) words_ = {};
  }

 private:
  [[nodiscard]] std::size_t index(Seq seq) const { return (seq / 64) & (words_.size() - 1); }
  [[nodiscard]] bool has(Seq seq) const { return (words_[index(seq)] >> (seq % 64) & 1) != 0; }

  void skip_held() {
    while (held_ != 0 && has(next_)) {
      words_[index(next_)] &= ~(std::uint64_t{1} << (next_ % 64));
      --held_;
      ++next_;
    }
  }

  void grow() {
    std::vector<std::uint64_t> wider(words_.empty() ? 2 : words_.size() * 2);
    const Seq end = next_ + static_cast<Seq>(words_.size() * 64);
    for (Seq seq = next_; held_ != 0 && seq != end; ++seq) {
      if (has(seq)) wider[(seq / 64) & (wider.size() - 1)] |= std::uint64_t{1} << (seq % 64);
    }
    words_ = std::move(wider);
  }

  Seq next_ = 0;
  std::uint32_t held_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace fabric
