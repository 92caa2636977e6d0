// Which measurements of acknowledgements the programs of an agent read. The others are not made.
#pragma once

#include <cstdint>
#include <span>

#include "simulation/ccp/loaded_program.hpp"

namespace fabric {

class PrimitivesRead {
 public:
  explicit PrimitivesRead(std::span<const ccp_program> programs) {
    for (const ccp_program& program : programs) {
      for (std::uint32_t i = 0; i < program.end; ++i) {
        const ccp_instruction& each = program.code[i];
        if (each.left_is_immediate == 0) read(each.left);
        if (each.right_is_immediate == 0) read(each.right);
      }
    }
  }

  [[nodiscard]] bool has(std::uint32_t primitive) const { return (mask_ >> primitive & 1U) != 0; }
  [[nodiscard]] bool has_rates() const { return has(CCP_RATE_INCOMING) || has(CCP_RATE_OUTGOING); }
  [[nodiscard]] bool has_flight() const {
    return has(CCP_BYTES_IN_FLIGHT) || has(CCP_PACKETS_IN_FLIGHT) || has(CCP_BYTES_PENDING);
  }
  // Whether anything is read that counts segments which arrived in any order, or marks.
  [[nodiscard]] bool has_arrivals() const {
    return has_rates() || has(CCP_BYTES_MISORDERED) || has(CCP_PACKETS_MISORDERED) || has(CCP_PACKETS_ACKED) ||
           has(CCP_ECN_BYTES) || has(CCP_ECN_PACKETS);
  }

 private:
  void read(std::uint32_t of) {
    const std::uint32_t number = of & (CCP_REGISTERS - 1);  // as ccp_step reads it
    if (number >= CCP_PRIMITIVE && number < CCP_PRIMITIVE + 16) mask_ |= 1U << (number - CCP_PRIMITIVE);
  }

  std::uint32_t mask_ = 0;
};

}  // namespace fabric
