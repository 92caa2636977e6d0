// What is known of a register's value before a program runs, and of the results of the datapath's operations.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simulation/ccp/loaded_program.hpp"

namespace fabric {

struct Range {
  ccp_u64 least = 0;
  ccp_u64 most = ~0ULL;

  [[nodiscard]] bool is_constant() const { return least == most; }
  [[nodiscard]] bool is_zero() const { return most == 0; }
  [[nodiscard]] bool may_be_zero() const { return least == 0; }
  [[nodiscard]] Range with(Range other) const { return {std::min(least, other.least), std::max(most, other.most)}; }
};

inline constexpr Range kBoolean{0, 1};

struct Result {
  Range value;
  bool may_fail = false;
};

inline Range greater(Range a, Range b) {
  if (a.least > b.most) return {1, 1};
  return a.most <= b.least ? Range{0, 0} : kBoolean;
}

inline Range equal(Range a, Range b) {
  if (a.is_constant() && b.is_constant() && a.least == b.least) return {1, 1};
  return a.most < b.least || b.most < a.least ? Range{0, 0} : kBoolean;
}

inline Result sum(Range a, Range b) {
  ccp_u64 most = 0;
  if (__builtin_add_overflow(a.most, b.most, &most)) return {{}, true};
  return {{a.least + b.least, most}};
}

inline Result product(Range a, Range b) {
  ccp_u64 most = 0;
  if (__builtin_mul_overflow(a.most, b.most, &most)) return {{}, true};
  return {{a.least * b.least, most}};
}

inline Result difference(Range a, Range b) {
  if (a.least < b.most) return {{0, a.most}, true};
  return {{a.least - b.most, a.most - b.least}};
}

inline Result quotient(Range a, Range b) {
  if (b.may_be_zero()) return {{0, a.most}, true};
  return {{a.least / b.most, a.most / b.least}};
}

// What ccp_step leaves in its target, which held `old`.
inline Result result(std::uint32_t op, Range a, Range b, Range old) {
  switch (op) {
    case CCP_OP_ADD: return sum(a, b);
    case CCP_OP_BIND: return {b};
    case CCP_OP_DEF: return {b.most < CCP_INFINITE_IMMEDIATE ? b : Range{}};
    case CCP_OP_DIV: return quotient(a, b);
    case CCP_OP_EQUIV: return {equal(a, b)};
    case CCP_OP_EWMA: return {old.is_zero() ? b : Range{}};
    case CCP_OP_GT: return {greater(a, b)};
    case CCP_OP_IF: return {a.is_zero() ? old : a.may_be_zero() ? old.with(b) : b};
    case CCP_OP_MAX: return {{std::max(a.least, b.least), std::max(a.most, b.most)}};
    case CCP_OP_MAXWRAP: return {Range{}};
    case CCP_OP_MIN: return {{std::min(a.least, b.least), std::min(a.most, b.most)}};
    case CCP_OP_MUL: return product(a, b);
    case CCP_OP_NOTIF: return {a.is_zero() ? b : a.may_be_zero() ? old.with(b) : old};
    case CCP_OP_SUB: return difference(a, b);
    default: return {{}, true};
  }
}

}  // namespace fabric
