// Presto (He et al., SIGCOMM 2015, section 3.1): the edge cuts every flow into cells of 64 kB, the most that TCP hands
// down at once, and sends each over the next of the paths, in turn. What restores the order at the receiver (section
// 3.2) is not here: hosts see the packets as they arrive.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace fabric {

class FlowCells {
 public:
  static constexpr std::string_view kName = "presto";

  explicit FlowCells(std::uint64_t cell_bytes) : cell_bytes_(cell_bytes) {}

  // The number of the cell that holds the flow's next bytes, from 0 on. A packet is never divided.
  [[nodiscard]] std::uint32_t next(std::uint32_t flow, std::uint32_t bytes) {
    Cell& cell = cells_[flow];
    if (cell.bytes + bytes > cell_bytes_) {
      cell.bytes = 0;
      ++cell.number;
    }
    cell.bytes += bytes;
    return cell.number;
  }

 private:
  struct Cell {
    std::uint64_t bytes = 0;
    std::uint32_t number = 0;
  };

  std::uint64_t cell_bytes_;
  std::unordered_map<std::uint32_t, Cell> cells_;  // by the flow's hash
};

}  // namespace fabric
