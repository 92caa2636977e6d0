#include "simulation/ccp/fold_unit.hpp"

#include "simulation/ccp/translation.hpp"

namespace fabric {

namespace {

void add(RegisterSet& to, bool immediate, std::uint32_t number) {
  if (!immediate) to.set(number & (CCP_REGISTERS - 1));
}

// What a report reads, and what the instructions for new values read, which are not translated.
RegisterSet read_at_reports(const ccp_program& program) {
  RegisterSet out;
  for (std::uint32_t i = 0; i < program.fields; ++i) out.set(CCP_REPORT + i);
  for (std::uint32_t i = 0; i < program.reset; ++i) {
    const ccp_instruction& each = program.code[i];
    add(out, each.right_is_immediate != 0, each.right);
    if (each.op == CCP_OP_DEF || each.op == CCP_OP_BIND) continue;
    add(out, each.left_is_immediate != 0, each.left);
    out.set(each.to & (CCP_REGISTERS - 1U));
  }
  return out;
}

// What each acknowledgement sets before a program runs.
bool is_set_before(std::size_t number) {
  const bool implicit = number >= CCP_FLAG && number <= CCP_RATE;
  return implicit || (number >= CCP_PRIMITIVE && number - CCP_PRIMITIVE <= CCP_REPORT_US);
}

// By ccp_acknowledged, and by its fallback.
RegisterSet read_after_programs(const RegisterSet& kept) {
  RegisterSet out = kept;
  for (const std::size_t each : {CCP_SHOULD_REPORT, CCP_MICROS, CCP_CWND, CCP_RATE}) out.set(each);
  for (const std::size_t each : {CCP_BYTES_ACKED, CCP_LOST_PACKETS}) out.set(CCP_PRIMITIVE + each);
  return out;
}

}  // namespace

FoldUnit::FoldUnit(std::span<const ccp_program> programs) {
  for (const ccp_program& each : programs) programs_.push_back({each, {}, {}});
  translate();
}

// A register is kept if a program reads its value from before; whether it does depends on what is kept.
void FoldUnit::translate() {
  RegisterSet kept;
  for (const LoadedProgram& each : programs_) kept |= read_at_reports(each);
  for (RegisterSet before = ~kept; before != kept;) {
    before = kept;
    for (LoadedProgram& each : programs_) {
      for (const bool plain : {false, true}) {
        const Translation translation(each, read_after_programs(before), plain);
        (plain ? each.plain : each.general) = translation.code(flow.registers);
        for (std::size_t i = 0; i < kept.size(); ++i) {
          if (!is_set_before(i) && translation.read_from_before()[i]) kept.set(i);
        }
      }
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) kept_.push_back(static_cast<std::uint8_t>(i));
  }
}

}  // namespace fabric
