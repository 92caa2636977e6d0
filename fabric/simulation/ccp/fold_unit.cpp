#include "simulation/ccp/fold_unit.hpp"

#include <algorithm>
#include <map>
#include <set>

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
  return implicit || (number >= CCP_PRIMITIVE && number < CCP_PRIMITIVE + kPrimitives);
}

// By ccp_acknowledged, and by its fallback.
RegisterSet read_after_programs(const RegisterSet& kept) {
  RegisterSet out = kept;
  for (const std::size_t each : {CCP_SHOULD_REPORT, CCP_MICROS, CCP_CWND, CCP_RATE}) out.set(each);
  for (const std::size_t each : {CCP_BYTES_ACKED, CCP_LOST_PACKETS}) out.set(CCP_PRIMITIVE + each);
  return out;
}

// Constants are in registers that no program names, from the last one downwards.
class Constants {
 public:
  explicit Constants(std::span<const LoadedProgram> programs) {
    for (const LoadedProgram& each : programs) {
      for (std::uint32_t i = 0; i < each.end; ++i) {
        const ccp_instruction& instruction = each.code[i];
        named_.set(instruction.to & (CCP_REGISTERS - 1U));
        add(named_, instruction.left_is_immediate != 0, instruction.left);
        add(named_, instruction.right_is_immediate != 0, instruction.right);
      }
    }
  }

  [[nodiscard]] bool place(const std::set<ccp_u64>& values, ccp_u64* registers) {
    for (const ccp_u64 value : values) {
      if (registers_.contains(value)) continue;
      while (next_ > kFirst && named_[next_ - 1]) --next_;
      if (next_ == kFirst) return false;
      registers[--next_] = value;
      registers_[value] = static_cast<std::uint8_t>(next_);
    }
    return true;
  }
  [[nodiscard]] const std::map<ccp_u64, std::uint8_t>& registers() const { return registers_; }

 private:
  static constexpr std::size_t kFirst = CCP_PRIMITIVE + kPrimitives;  // the datapath itself uses those below

  RegisterSet named_;
  std::map<ccp_u64, std::uint8_t> registers_;
  std::size_t next_ = CCP_REGISTERS;
};

}  // namespace

FoldUnit::FoldUnit(std::span<const ccp_program> programs) {
  for (const ccp_program& each : programs) programs_.push_back({{}, each});
  keep_registers();
  translate();
}

// A register is kept if a program reads its value from before; whether it does depends on what is kept.
void FoldUnit::keep_registers() {
  for (const LoadedProgram& each : programs_) kept_ |= read_at_reports(each);
  for (RegisterSet before = ~kept_; before != kept_;) {
    before = kept_;
    for (const LoadedProgram& each : programs_) {
      for (const bool plain : {false, true}) {
        const RegisterSet read = Translation(each, read_after_programs(before), plain).read_from_before();
        for (std::size_t i = 0; i < read.size(); ++i) {
          if (read[i] && !is_set_before(i)) kept_.set(i);
        }
      }
    }
  }
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i]) far_.push_back(static_cast<std::uint8_t>(i));
  }
  const auto near = far_.begin() + static_cast<std::ptrdiff_t>(std::min(kNear, far_.size()));
  std::copy(far_.begin(), near, near_.begin());
  far_.erase(far_.begin(), near);
}

// A program whose constants find no place stays as it is.
void FoldUnit::translate() {
  Constants constants(programs_);
  for (LoadedProgram& each : programs_) {
    const Translation general(each, read_after_programs(kept_), false);
    const Translation plain(each, read_after_programs(kept_), true);
    if (!constants.place(general.constants(), flow.registers)) continue;
    if (!constants.place(plain.constants(), flow.registers)) continue;
    each.general = general.code(constants.registers());
    each.plain = plain.code(constants.registers());
  }
}

namespace {

struct Operands {
  ccp_u64 left, right;
  ccp_u64& to;
};

Operands operands(const Operation* now, ccp_u64* registers) {
  return {registers[now->left], registers[now->right], registers[now->to]};
}

bool go_on(const Operation* now, ccp_u64* registers) {
  ++now;
  return now->carry_out(now, registers);
}

// An operation that cannot fail.
template <auto kCompute>
bool compute(const Operation* now, ccp_u64* registers) {
  const Operands of = operands(now, registers);
  of.to = kCompute(of.left, of.right);
  return go_on(now, registers);
}

// One that fails with some operands.
template <auto kCompute, auto kFails>
bool compute_or_fail(const Operation* now, ccp_u64* registers) {
  const Operands of = operands(now, registers);
  if (kFails(of.left, of.right)) return false;
  of.to = kCompute(of.left, of.right);
  return go_on(now, registers);
}

template <auto kHolds>
bool skip_unless(const Operation* now, ccp_u64* registers) {
  const Operands of = operands(now, registers);
  return go_on(kHolds(of.left, of.right) ? now : now + now->skipped, registers);
}

// Takes the right operand if the left one is 0, or is not.
template <bool kIfZero>
bool choose(const Operation* now, ccp_u64* registers) {
  const Operands of = operands(now, registers);
  if ((of.left == 0) == kIfZero) of.to = of.right;
  return go_on(now, registers);
}

bool average(const Operation* now, ccp_u64* registers) {
  const Operands of = operands(now, registers);
  of.to = of.to == 0 ? of.right : (of.left * of.to + (10 - of.left) * of.right) / 10;
  return go_on(now, registers);
}

bool end(const Operation* /*now*/, ccp_u64* /*registers*/) { return true; }
bool fail(const Operation* /*now*/, ccp_u64* /*registers*/) { return false; }

using Word = ccp_u64;
constexpr auto kGreater = [](Word a, Word b) { return a > b; };
constexpr auto kEquals = [](Word a, Word b) { return a == b; };
constexpr auto kSum = [](Word a, Word b) { return a + b; };
constexpr auto kDifference = [](Word a, Word b) { return a - b; };
constexpr auto kProduct = [](Word a, Word b) { return a * b; };
constexpr auto kQuotient = [](Word a, Word b) { return a / b; };
constexpr auto kLarger = [](Word a, Word b) { return a > b ? a : b; };
constexpr auto kSmaller = [](Word a, Word b) { return a < b ? a : b; };
constexpr auto kLater = [](Word a, Word b) { return ccp_later(a, b); };
constexpr auto kRight = [](Word /*a*/, Word b) { return b; };
constexpr auto kDefined = [](Word /*a*/, Word b) { return b == CCP_INFINITE_IMMEDIATE ? ~Word{0} : b; };
constexpr auto kSumOverflows = [](Word a, Word b) { return a + b < a; };
constexpr auto kDifferenceUnderflows = [](Word a, Word b) { return a - b > a; };
constexpr auto kProductOverflows = [](Word a, Word b) { return a * b < a && b > 0; };
constexpr auto kDividesByZero = [](Word /*a*/, Word b) { return b == 0; };

}  // namespace

CarryOut carried_out(std::uint8_t code) {
  switch (code) {
    case kUnlessGreater: return skip_unless<kGreater>;
    case kUnlessEqual: return skip_unless<kEquals>;
    case kEnd: return end;
    case CCP_OP_ADD: return compute_or_fail<kSum, kSumOverflows>;
    case CCP_OP_BIND: return compute<kRight>;
    case CCP_OP_DEF: return compute<kDefined>;
    case CCP_OP_DIV: return compute_or_fail<kQuotient, kDividesByZero>;
    case CCP_OP_EQUIV: return compute<kEquals>;
    case CCP_OP_EWMA: return average;
    case CCP_OP_GT: return compute<kGreater>;
    case CCP_OP_IF: return choose<false>;
    case CCP_OP_MAX: return compute<kLarger>;
    case CCP_OP_MAXWRAP: return compute<kLater>;
    case CCP_OP_MIN: return compute<kSmaller>;
    case CCP_OP_MUL: return compute_or_fail<kProduct, kProductOverflows>;
    case CCP_OP_NOTIF: return choose<true>;
    case CCP_OP_SUB: return compute_or_fail<kDifference, kDifferenceUnderflows>;
    default: return fail;
  }
}

bool run_as_it_is(ccp_flow& flow, const ccp_program& program, std::uint32_t from, std::uint32_t end) {
  while (from < end) {
    const int outcome = ccp_step(&flow, &program, &from);
    if (outcome != CCP_NEXT) return outcome == CCP_DONE;
  }
  return true;
}

}  // namespace fabric
