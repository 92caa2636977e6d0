// A program of the datapath as the simulator runs it: decoded once, small enough for two cache lines. All operands
// are registers, and a condition is a comparison that skips what follows. Results are those of ccp_step (ccp/datapath.h),
// whose loop this file replaces: it is included instead of that header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#define CCP_OWN_LOOP
#include "ccp/datapath.h"

namespace fabric {

// Beside the operations of ccp/datapath.h.
enum : std::uint8_t { kUnlessGreater = 16, kUnlessEqual = 17, kEnd = 18, kFail = 19 };

// Carries out an operation and all that follow. Each ends with a jump of its own to the next one's, which processors
// predict better than one jump for all. Returns whether all went well.
struct Operation;
using CarryOut = bool (*)(const Operation* now, ccp_u64* registers);
CarryOut carried_out(std::uint8_t code);

struct Operation {
  CarryOut carry_out = nullptr;
  std::uint8_t to = 0;
  std::uint8_t left = 0;
  std::uint8_t right = 0;
  std::uint16_t skipped = 0;  // operations after a comparison that does not hold
};

using Code = std::vector<Operation>;

// Most acknowledgements are plain: no loss, no mark, nothing out of order, no timeout.
inline constexpr std::array<std::size_t, 6> kZeroIfPlain{CCP_BYTES_MISORDERED, CCP_ECN_BYTES,          CCP_ECN_PACKETS,
                                                         CCP_LOST_PACKETS,     CCP_PACKETS_MISORDERED, CCP_WAS_TIMEOUT};
inline bool is_plain(const ccp_u64* registers) {
  ccp_u64 any = 0;
  for (const std::size_t each : kZeroIfPlain) any |= registers[CCP_PRIMITIVE + each];
  return any == 0;
}

// Of a main section: for all acknowledgements, and for plain ones. Both are empty if it is not translated.
struct Codes {
  Code general;
  Code plain;
};

// What an acknowledgement reads is in the first cache line.
struct alignas(64) LoadedProgram : Codes, ccp_program {};

bool run_as_it_is(ccp_flow& flow, const ccp_program& program, std::uint32_t from, std::uint32_t end);

}  // namespace fabric

// All programs of the simulator are loaded programs.
[[maybe_unused]] static inline int ccp_execute(ccp_flow* flow, const ccp_program* program, ccp_u32 from, ccp_u32 end) {
  const auto& loaded = static_cast<const fabric::LoadedProgram&>(*program);
  const bool translated = from == program->reset && end == program->end && !loaded.general.empty();
  if (!translated) return fabric::run_as_it_is(*flow, *program, from, end) ? 1 : 0;
  const fabric::Operation* first = (fabric::is_plain(flow->registers) ? loaded.plain : loaded.general).data();
  return first->carry_out(first, flow->registers) ? 1 : 0;
}
