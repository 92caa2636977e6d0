// Paths chosen for single flows, which take precedence over routing: an exact match of the 5-tuple.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/hash.hpp"
#include "core/packet.hpp"

namespace fabric {

class ChosenPaths {
 public:
  void set(const FiveTuple& flow, const Path& path) { paths_.insert_or_assign(flow, path); }
  void clear(const FiveTuple& flow) { paths_.erase(flow); }

  [[nodiscard]] bool empty() const { return paths_.empty(); }
  // nullptr for a flow without one.
  [[nodiscard]] const Path* find(const FiveTuple& flow) const {
    const auto found = paths_.find(flow);
    return found == paths_.end() ? nullptr : &found->second;
  }

 private:
  struct Hash {
    std::size_t operator()(const FiveTuple& flow) const { return flow_hash(flow); }
  };

  std::unordered_map<FiveTuple, Path, Hash> paths_;
};

}  // namespace fabric
