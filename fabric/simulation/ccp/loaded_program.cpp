#include "simulation/ccp/loaded_program.hpp"

namespace fabric {

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
