// Lists of paths, for policies whose paths are not all the shortest ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace fabric {

// The paths from each attachment to each other one. A path of weight w stands for w consecutive ranks.
class PathLists {
 public:
  PathLists() = default;  // none

  // Paths from attachment a to b have the numbers from first_paths[a * attachments + b] up to the next one of these.
  // Path i passes ports[first_ports[i] .. first_ports[i + 1]).
  PathLists(std::size_t attachments, std::vector<std::uint32_t> first_paths, std::vector<std::uint32_t> first_ports,
            std::vector<std::uint32_t> weights, std::vector<PortId> ports)
      : attachments_(attachments), first_paths_(std::move(first_paths)), first_ports_(std::move(first_ports)),
        ends_(std::move(weights)), ports_(std::move(ports)) {
    if (first_paths_.empty()) return;
    if (first_paths_.size() != attachments * attachments + 1 || !covers(first_paths_, ends_.size()) ||
        first_ports_.size() != ends_.size() + 1 || !covers(first_ports_, ports_.size())) {
      throw std::invalid_argument("lists of paths: their columns do not fit together");
    }
    for (std::size_t pair = 0; pair + 1 < first_paths_.size(); ++pair) {
      std::uint64_t sum = 0;
      for (std::size_t i = first_paths_[pair]; i < first_paths_[pair + 1]; ++i) {
        if (ends_[i] == 0) throw std::invalid_argument("lists of paths: a path without a weight");
        sum += ends_[i];
        ends_[i] = static_cast<std::uint32_t>(sum);
      }
      if (sum > kNone) throw std::invalid_argument("lists of paths: the weights from one switch to another exceed 2^32");
    }
  }

  [[nodiscard]] bool empty() const { return first_paths_.empty(); }
  [[nodiscard]] std::size_t count(std::uint32_t from, std::uint32_t to) const { return last(from, to) - first(from, to); }
  // The sum of weights: the number of ranks.
  [[nodiscard]] std::uint32_t ranks(std::uint32_t from, std::uint32_t to) const {
    return count(from, to) == 0 ? 0 : ends_[last(from, to) - 1];
  }
  [[nodiscard]] std::span<const PortId> path(std::uint32_t from, std::uint32_t to, std::size_t number) const {
    return ports_of(first(from, to) + number);
  }
  [[nodiscard]] std::span<const PortId> of_rank(std::uint32_t from, std::uint32_t to, std::uint32_t rank) const {
    const auto begin = ends_.begin() + static_cast<std::ptrdiff_t>(first(from, to));
    const auto end = ends_.begin() + static_cast<std::ptrdiff_t>(last(from, to));
    return ports_of(static_cast<std::size_t>(std::upper_bound(begin, end, rank) - ends_.begin()));
  }

 private:
  [[nodiscard]] static bool covers(std::span<const std::uint32_t> firsts, std::size_t size) {
    return firsts.front() == 0 && firsts.back() == size && std::is_sorted(firsts.begin(), firsts.end());
  }
  [[nodiscard]] std::size_t first(std::uint32_t from, std::uint32_t to) const { return first_paths_[from * attachments_ + to]; }
  [[nodiscard]] std::size_t last(std::uint32_t from, std::uint32_t to) const {
    return first_paths_[from * attachments_ + to + 1];
  }
  [[nodiscard]] std::span<const PortId> ports_of(std::size_t path) const {
    return std::span(ports_).subspan(first_ports_[path], first_ports_[path + 1] - first_ports_[path]);
  }

  std::size_t attachments_ = 0;
  std::vector<std::uint32_t> first_paths_;
  std::vector<std::uint32_t> first_ports_;
  std::vector<std::uint32_t> ends_;  // the sum of weights of a pair's paths up to this one
  std::vector<PortId> ports_;
};

}  // namespace fabric
