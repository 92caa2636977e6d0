// The registers in which a datapath works, and the programs of its agent, translated for them. It takes the
// acknowledgements of all flows in turn: of a flow's registers, only those are kept that something reads later.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulation/ccp/loaded_program.hpp"

namespace fabric {

class FoldUnit {
 public:
  explicit FoldUnit(std::span<const ccp_program> programs);
  FoldUnit(const FoldUnit&) = delete;  // translated programs have the addresses of its registers
  FoldUnit& operator=(const FoldUnit&) = delete;
  FoldUnit(FoldUnit&&) = delete;
  FoldUnit& operator=(FoldUnit&&) = delete;
  ~FoldUnit() = default;

  // The number of registers to keep of each flow.
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }
  void load(const ccp_u64* from) {
    for (const std::uint8_t number : kept_) flow.registers[number] = *from++;
  }
  void store(ccp_u64* to) const {
    for (const std::uint8_t number : kept_) *to++ = flow.registers[number];
  }
  [[nodiscard]] const LoadedProgram& program() const { return programs_[flow.program]; }

  ccp_flow flow{};  // whose acknowledgement is taken; its errors and fallbacks are those of all flows

 private:
  void translate();

  std::vector<LoadedProgram> programs_;
  std::vector<std::uint8_t> kept_;
};

}  // namespace fabric
