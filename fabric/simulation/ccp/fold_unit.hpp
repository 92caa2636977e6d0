// The programs of an agent as the simulator runs them, and the registers in which all flows' acknowledgements are folded.
//
// A program is decoded once, small enough for two cache lines. All operands are registers, and a condition is a comparison
// that skips what follows. Results are those of ccp_step (ccp/datapath.h), whose loop this file replaces: it is included
// instead of that header.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#define CCP_OWN_LOOP
#include "ccp/datapath.h"

namespace fabric {

// Primitives beside those of ccp/datapath.h, which real hosts do not have: of the busiest hop of the path, between the
// acknowledged segment and the one before. A flow that was not measured has 0 in all of them.
inline constexpr std::size_t kHopQueueBytes = CCP_REPORT_US + 1;
inline constexpr std::size_t kHopRate = kHopQueueBytes + 1;    // bytes per second that it sent
inline constexpr std::size_t kHopLinkRate = kHopRate + 1;      // bytes per second
inline constexpr std::size_t kHopIntervalNs = kHopLinkRate + 1;
inline constexpr std::size_t kPrimitives = kHopIntervalNs + 1;

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

// Takes the acknowledgements of all flows in turn: of a flow's registers, only those are kept that something reads later.
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

// All programs of the simulator are loaded programs.
[[maybe_unused]] static inline int ccp_execute(ccp_flow* flow, const ccp_program* program, ccp_u32 from, ccp_u32 end) {
  const auto& loaded = static_cast<const fabric::LoadedProgram&>(*program);
  const bool translated = from == program->reset && end == program->end && !loaded.general.empty();
  if (!translated) return fabric::run_as_it_is(*flow, *program, from, end) ? 1 : 0;
  const fabric::Operation* first = (fabric::is_plain(flow->registers) ? loaded.plain : loaded.general).data();
  return first->carry_out(first, flow->registers) ? 1 : 0;
}
