// A program of the datapath as the simulator runs it: decoded once, for one array of registers. Operands are addresses,
// and a condition is a comparison that skips what follows. Results are those of ccp_step (ccp/datapath.h), whose loop
// this file replaces: it is included instead of that header.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#define CCP_OWN_LOOP
#include "ccp/datapath.h"

namespace fabric {

// Beside the operations of ccp/datapath.h.
enum : std::uint32_t { kUnlessGreater = 16, kUnlessEqual = 17, kEnd = 18, kFail = 19 };

struct Operation {
  std::uint32_t code = kEnd;
  std::uint32_t skipped = 0;  // operations after a comparison that does not hold
  const ccp_u64* left = nullptr;
  const ccp_u64* right = nullptr;
  ccp_u64* to = nullptr;
};

struct Code {
  std::vector<Operation> operations;
  std::vector<ccp_u64> constants;  // that operands refer to
};

// Most acknowledgements are plain: no loss, no mark, nothing out of order, no timeout.
inline constexpr std::array<std::size_t, 6> kZeroIfPlain{CCP_BYTES_MISORDERED, CCP_ECN_BYTES,          CCP_ECN_PACKETS,
                                                         CCP_LOST_PACKETS,     CCP_PACKETS_MISORDERED, CCP_WAS_TIMEOUT};
inline bool is_plain(const ccp_u64* registers) {
  ccp_u64 any = 0;
  for (const std::size_t each : kZeroIfPlain) any |= registers[CCP_PRIMITIVE + each];
  return any == 0;
}

// Its main section has code for all acknowledgements and code for plain ones.
struct LoadedProgram : ccp_program {
  Code general;
  Code plain;
};

// Returns whether all went well.
bool run(const Code& code);
bool run_as_it_is(ccp_flow& flow, const ccp_program& program, std::uint32_t from, std::uint32_t end);

}  // namespace fabric

// All programs of the simulator are loaded programs.
[[maybe_unused]] static int ccp_execute(ccp_flow* flow, const ccp_program* program, ccp_u32 from, ccp_u32 end) {
  if (from != program->reset || end != program->end) return fabric::run_as_it_is(*flow, *program, from, end) ? 1 : 0;
  const auto& loaded = static_cast<const fabric::LoadedProgram&>(*program);
  return fabric::run(fabric::is_plain(flow->registers) ? loaded.plain : loaded.general) ? 1 : 0;
}
