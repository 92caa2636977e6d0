// Translates the main section of a program of the datapath (loaded_program.hpp).
//
// Ranges of values are followed forwards, which knows the outcome of many operations and conditions. Comparisons that
// make a condition become its own, and what nothing reads is left out. Jumps only lead forwards, so one pass in each
// direction sees everything. An instruction becomes at most kMostComparisons operations, whatever the program.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "simulation/ccp/loaded_program.hpp"
#include "simulation/ccp/ranges.hpp"

namespace fabric {

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
