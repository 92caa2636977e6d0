// The registers in which a datapath works, and the programs of its agent, translated for them. It takes the
// acknowledgements of all flows in turn: of a flow's registers, only those are kept that something reads later.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simulation/ccp/loaded_program.hpp"

namespace fabric {

class FoldUnit {
 public:
  // The first registers that are kept have a place of their own: few programs have more.
  static constexpr std::size_t kNear = 3;
  using Near = std::array<ccp_u64, kNear>;

  explicit FoldUnit(std::span<const ccp_program> programs);

  void load(const Near& near, const ccp_u64* far) {
    for (std::size_t i = 0; i < kNear; ++i) flow.registers[near_[i]] = near[i];
    for (const std::uint8_t number : far_) flow.registers[number] = *far++;
  }
  void store(Near& near, ccp_u64* far) const {
    for (std::size_t i = 0; i < kNear; ++i) near[i] = flow.registers[near_[i]];
    for (const std::uint8_t number : far_) *far++ = flow.registers[number];
  }
  // The number of registers that have no place among the near ones.
  [[nodiscard]] std::size_t far() const { return far_.size(); }
  [[nodiscard]] const LoadedProgram& program() const { return programs_[flow.program]; }

 private:
  void keep_registers();
  void translate();

  std::vector<LoadedProgram> programs_;
  std::array<std::uint8_t, kNear> near_{};  // where they are fewer, the others are register 0
  std::vector<std::uint8_t> far_;

 public:
  // Whose acknowledgement is taken. Its errors and fallbacks are those of all flows.
  alignas(64) ccp_flow flow{};

 private:
  std::bitset<CCP_REGISTERS> kept_;
};

}  // namespace fabric
