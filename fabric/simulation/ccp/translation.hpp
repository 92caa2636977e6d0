// Translates the main section of a program of the datapath (fold_unit.hpp).
//
// Ranges of values are followed forwards, which knows the outcome of many operations and conditions. Comparisons that
// make a condition become its own, and what nothing reads is left out. Jumps only lead forwards, so one pass in each
// direction sees everything. An instruction becomes at most kMostComparisons operations, whatever the program.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "simulation/ccp/fold_unit.hpp"

namespace fabric {

// What is known of a register's value before a program runs, and of the results of the datapath's operations.
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

using RegisterSet = std::bitset<CCP_REGISTERS>;

// Of one condition; one with more tests the register instead. An expression of the compiler has at most 17.
inline constexpr std::size_t kMostComparisons = 32;
static_assert(CCP_INSTRUCTIONS * kMostComparisons <= std::numeric_limits<decltype(Operation::skipped)>::max());

class Translation {
 public:
  // `read_later`: registers that are read after the program.
  Translation(const ccp_program& program, const RegisterSet& read_later, bool plain);

  // Registers whose values from before the acknowledgement it may read.
  [[nodiscard]] const RegisterSet& read_from_before() const { return read_from_before_; }
  // Those among its operands.
  [[nodiscard]] std::set<ccp_u64> constants() const;
  // `constants` says which registers hold them.
  [[nodiscard]] Code code(const std::map<ccp_u64, std::uint8_t>& constants) const;

 private:
  struct Operand {
    bool immediate = true;
    ccp_u64 value = 0;  // or the register's number
  };
  struct Comparison {  // UNLESS and STOP go on if all their comparisons hold
    std::uint8_t code = kUnlessEqual;
    Operand left, right;
  };
  struct Node {
    std::uint8_t op = 0;
    std::uint8_t to = 0;  // of a condition: the register that is tested
    Operand left, right;
    std::size_t target = 0;  // 0: not a condition
    std::vector<Comparison> comparisons;
    Range tested;
    bool reached = false;
    bool may_fail = false;
    bool useless = false;
  };
  using Facts = std::array<Range, CCP_REGISTERS>;
  // Whether a condition has comparisons for a value: by the node that gave it to a register, or by the register.
  using Outcomes = std::map<std::size_t, bool>;

  void decode(const ccp_program& program);
  static Node decoded(const ccp_instruction& instruction, std::size_t number, std::size_t end);
  static Operand operand(bool immediate, std::uint32_t value);
  void follow(bool plain);
  void compute(Node& node, Facts& facts);
  void merge(std::size_t number, const Facts& facts);
  void branch(std::size_t number, const Facts& facts);
  void join_comparisons();
  bool add_comparisons(std::uint8_t tested, std::size_t before, std::size_t at, Outcomes& outcomes);
  [[nodiscard]] std::optional<std::size_t> written_by(std::uint32_t number, std::size_t before) const;
  [[nodiscard]] bool unchanged(const Operand& operand, std::size_t from, std::size_t at) const;
  void remove_unread(const RegisterSet& read_later);
  [[nodiscard]] std::vector<std::size_t> operations_from() const;
  template <class Visit>
  void each_operation(const std::vector<std::size_t>& from, Visit visit) const;

  std::vector<Node> nodes_;
  std::vector<std::optional<Facts>> facts_;  // before each node, and at the end
  std::vector<bool> joined_;                 // conditions jump to here
  RegisterSet read_from_before_;
};

}  // namespace fabric
