// Delivery opportunities of a link whose capacity changes, such as a cellular one: instants at which it carries up to
// a full frame. Capacity that no packet uses is lost, and a packet may need several opportunities. The instants repeat
// after a period. This is what a trace file of the mahimahi emulator means (Netravali et al., USENIX ATC 2015).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace fabric {

inline constexpr std::uint32_t kOpportunityBytes = 1514;

class Opportunities {
 public:
  // Throws std::invalid_argument unless there is one and all lie, in order, in (0, period].
  Opportunities(std::vector<Time> at, Time period) : at_(std::move(at)), period_(period) {
    const bool fits = !at_.empty() && at_.front() > 0 && at_.back() <= period_ && std::ranges::is_sorted(at_);
    if (!fits) throw std::invalid_argument("delivery opportunities must be in order, after 0 and within the period");
  }

  [[nodiscard]] Time at(std::uint64_t number) const {
    return static_cast<Time>(number / at_.size()) * period_ + at_[number % at_.size()];
  }

  // The number of the first one at or after `when`, which is at least 0.
  [[nodiscard]] std::uint64_t first_from(Time when) const {
    const auto round = static_cast<std::uint64_t>(when / period_);
    const auto within = std::ranges::lower_bound(at_, when - static_cast<Time>(round) * period_) - at_.begin();
    const std::uint64_t found = round * at_.size() + static_cast<std::uint64_t>(within);
    // The end of a period is the last instant of the one before.
    return found > 0 && at(found - 1) >= when ? found - 1 : found;
  }

 private:
  std::vector<Time> at_;
  Time period_;
};

// How far the transmitter of one port has used its opportunities.
class OpportunityCursor {
 public:
  explicit OpportunityCursor(std::shared_ptr<const Opportunities> all) : all_(std::move(all)) {}

  // When the last byte leaves of a packet whose turn begins at `begin`. `begin` must not decrease between calls.
  [[nodiscard]] Time departure(Time begin, std::uint32_t bytes) {
    if (left_ != 0 && all_->at(next_ - 1) < begin) left_ = 0;
    if (left_ == 0) next_ = std::max(next_, all_->first_from(begin));
    while (bytes > left_) {
      bytes -= left_;
      left_ = kOpportunityBytes;
      ++next_;
    }
    left_ -= bytes;
    return all_->at(next_ - 1);
  }

 private:
  std::shared_ptr<const Opportunities> all_;
  std::uint64_t next_ = 0;  // the first opportunity that has carried nothing
  std::uint32_t left_ = 0;  // bytes that the one before can still carry
};

}  // namespace fabric
