#include "simulation/ccp/translation.hpp"

#include <algorithm>
#include <utility>

namespace fabric {

Translation::Translation(const ccp_program& program, const RegisterSet& read_later, bool plain) {
  decode(program);
  follow(plain);
  join_comparisons();
  remove_unread(read_later);
}

void Translation::decode(const ccp_program& program) {
  const std::size_t end = program.end - program.reset;
  for (std::size_t i = 0; i < end; ++i) nodes_.push_back(decoded(program.code[program.reset + i], i, end));
  facts_.resize(end + 1);
  joined_.resize(end + 1);
}

Translation::Operand Translation::operand(bool immediate, std::uint32_t value) {
  return {immediate, immediate ? value : value & (CCP_REGISTERS - 1)};
}

Translation::Node Translation::decoded(const ccp_instruction& instruction, std::size_t number, std::size_t end) {
  Node node;
  node.op = instruction.op;
  node.to = static_cast<std::uint8_t>(instruction.to & (CCP_REGISTERS - 1U));
  node.left = operand(instruction.left_is_immediate != 0, instruction.left);
  node.right = operand(instruction.right_is_immediate != 0, instruction.right);
  switch (instruction.op) {
    case CCP_OP_UNLESS:
      node.to = CCP_FLAG;
      node.target = std::min<std::size_t>(number + 1 + (instruction.right & (CCP_INSTRUCTIONS - 1)), end);
      break;
    case CCP_OP_STOP:
      node.to = CCP_FALLTHROUGH;
      node.target = end;
      break;
    case CCP_OP_LT:
      node.op = CCP_OP_GT;
      std::swap(node.left, node.right);
      break;
    case CCP_OP_DEF:
      if (!node.right.immediate) break;
      node.op = CCP_OP_BIND;
      if (node.right.value == CCP_INFINITE_IMMEDIATE) node.right.value = ~0ULL;
      break;
    default:
      if (instruction.op > CCP_OP_SUB) node.op = kFail;
  }
  return node;
}

void Translation::follow(bool plain) {
  Facts facts;
  for (const std::size_t each : {CCP_FLAG, CCP_FALLTHROUGH, CCP_SHOULD_REPORT}) facts.at(each) = {0, 0};
  for (const std::size_t each : kZeroIfPlain) {
    if (plain) facts.at(CCP_PRIMITIVE + each) = {0, 0};
  }
  merge(0, facts);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!facts_[i]) continue;
    nodes_[i].reached = true;
    if (nodes_[i].target != 0) {
      branch(i, *facts_[i]);
    } else {
      facts = *facts_[i];
      compute(nodes_[i], facts);
      merge(i + 1, facts);
    }
  }
}

void Translation::merge(std::size_t number, const Facts& facts) {
  std::optional<Facts>& known = facts_[number];
  if (!known) {
    known = facts;
    return;
  }
  for (std::size_t i = 0; i < known->size(); ++i) (*known)[i] = (*known)[i].with(facts[i]);
}

void Translation::compute(Node& node, Facts& facts) {
  const auto range = [&](const Operand& of) { return of.immediate ? Range{of.value, of.value} : facts[of.value]; };
  const Range left = range(node.left);
  const Range right = range(node.right);
  if (left.is_constant()) node.left = {true, left.least};
  if (right.is_constant()) node.right = {true, right.least};
  Range& to = facts[node.to];
  const Result found = result(node.op, left, right, to);
  node.may_fail = found.may_fail;
  const bool chooses = node.op == CCP_OP_IF || node.op == CCP_OP_NOTIF;
  if (chooses && (left.is_zero() || !left.may_be_zero())) {
    const bool keeps = left.is_zero() == (node.op == CCP_OP_IF);
    node.op = CCP_OP_BIND;
    if (keeps) node.right = {false, node.to};
  }
  if (found.value.is_constant() && !found.may_fail) {
    node.op = CCP_OP_BIND;
    node.right = {true, found.value.least};
  }
  if (node.op == CCP_OP_BIND) node.left = node.right;
  to = found.value;
}

void Translation::branch(std::size_t number, const Facts& facts) {
  Node& node = nodes_[number];
  node.tested = facts[node.to];
  if (!node.tested.is_zero()) {
    Facts then = facts;
    then[node.to].least = std::max<ccp_u64>(1, node.tested.least);
    merge(number + 1, then);
  }
  if (node.tested.may_be_zero()) {
    Facts otherwise = facts;
    otherwise[node.to] = {0, 0};
    merge(node.target, otherwise);
    joined_[node.target] = true;
  }
}

void Translation::join_comparisons() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (!node.reached || node.target == 0 || !node.tested.may_be_zero()) continue;
    if (node.tested.is_zero()) {
      node.comparisons = {{kUnlessEqual, {true, 0}, {true, 1}}};
      continue;
    }
    Outcomes outcomes;
    add_comparisons(node.to, i, i, outcomes);
    if (node.comparisons.size() > kMostComparisons) node.comparisons = {{kUnlessGreater, {false, node.to}, {true, 0}}};
  }
}

// Gives the condition `at` comparisons that hold where the register `tested` was not 0 before node `before`. Returns
// false if it no longer can: something has changed since. A value that is read again gets no second comparison: either
// the first is still there, or a register is tested that is 0 where the value is. Otherwise the comparisons of
// `a = a and a` would double with each line.
bool Translation::add_comparisons(std::uint8_t tested, std::size_t before, std::size_t at, Outcomes& outcomes) {
  const std::optional<std::size_t> found = written_by(tested, before);
  const auto [outcome, is_new] = outcomes.try_emplace(found ? *found : nodes_.size() + tested, true);
  if (!is_new) return outcome->second;
  std::vector<Comparison>& comparisons = nodes_[at].comparisons;
  const std::size_t first = comparisons.size();
  if (found) {
    const Node& node = nodes_[*found];
    if (node.op == CCP_OP_GT || node.op == CCP_OP_EQUIV) {
      if (unchanged(node.left, *found, at) && unchanged(node.right, *found, at)) {
        comparisons.push_back({node.op == CCP_OP_GT ? kUnlessGreater : kUnlessEqual, node.left, node.right});
        return true;
      }
    }
    if ((node.op == CCP_OP_MUL && !node.may_fail) || node.op == CCP_OP_BIND) {  // `and`, or a copy
      const auto add = [&](const Operand& of) {
        return of.immediate || add_comparisons(static_cast<std::uint8_t>(of.value), *found, at, outcomes);
      };
      if (add(node.left) && (node.op == CCP_OP_BIND || add(node.right))) return true;
      comparisons.resize(first);
    }
  }
  const Operand self{false, tested};
  outcome->second = unchanged(self, before, at);
  if (outcome->second) comparisons.push_back({kUnlessGreater, self, {true, 0}});
  return outcome->second;
}

// The node that certainly gave the register its value.
std::optional<std::size_t> Translation::written_by(std::uint32_t number, std::size_t before) const {
  for (std::size_t i = before; i > 0 && !joined_[i]; --i) {
    const Node& node = nodes_[i - 1];
    if (node.target == 0 && node.to == number) return i - 1;
  }
  return {};
}

bool Translation::unchanged(const Operand& operand, std::size_t from, std::size_t at) const {
  if (operand.immediate) return true;
  return std::none_of(nodes_.begin() + static_cast<std::ptrdiff_t>(from), nodes_.begin() + static_cast<std::ptrdiff_t>(at),
                      [&](const Node& node) { return node.target == 0 && node.to == operand.value; });
}

void Translation::remove_unread(const RegisterSet& read_later) {
  std::vector<RegisterSet> read(nodes_.size() + 1);  // from here on
  read.back() = read_later;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    Node& node = nodes_[i];
    RegisterSet& here = read[i] = read[i + 1];
    const auto reads = [&](const Operand& of) {
      if (!of.immediate) here.set(of.value);
    };
    if (!node.reached) continue;
    if (node.target != 0) {
      if (!node.comparisons.empty()) here |= read[node.target];
      for (const Comparison& each : node.comparisons) {
        reads(each.left);
        reads(each.right);
      }
      continue;
    }
    const bool copies_itself = node.op == CCP_OP_BIND && !node.right.immediate && node.right.value == node.to;
    node.useless = copies_itself || (!node.may_fail && !here[node.to]);
    if (node.useless) continue;
    const bool reads_target = node.op == CCP_OP_IF || node.op == CCP_OP_NOTIF || node.op == CCP_OP_EWMA;
    here.set(node.to, reads_target);
    if (node.may_fail) here |= read_later;
    reads(node.left);
    reads(node.right);
  }
  read_from_before_ = read.front();
}

// How many operations there are from each node to the end.
std::vector<std::size_t> Translation::operations_from() const {
  std::vector<std::size_t> out(nodes_.size() + 1);
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    std::size_t own = node.reached && !node.useless ? 1 : 0;
    if (node.target != 0) own = out[i + 1] == out[node.target] ? 0 : node.comparisons.size();
    out[i] = out[i + 1] + own;
  }
  return out;
}

// Calls `visit` with each operation and its node.
template <class Visit>
void Translation::each_operation(const std::vector<std::size_t>& from, Visit visit) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (from[i] == from[i + 1]) continue;
    if (node.target == 0) visit(Comparison{node.op, node.left, node.right}, node);
    for (const Comparison& each : node.comparisons) visit(each, node);
  }
}

std::set<ccp_u64> Translation::constants() const {
  std::set<ccp_u64> out;
  each_operation(operations_from(), [&](const Comparison& each, const Node& /*node*/) {
    for (const Operand& of : {each.left, each.right}) {
      if (of.immediate) out.insert(of.value);
    }
  });
  return out;
}

Code Translation::code(const std::map<ccp_u64, std::uint8_t>& constants) const {
  Code out;
  const std::vector<std::size_t> from = operations_from();
  const auto number = [&](const Operand& of) {
    return of.immediate ? constants.at(of.value) : static_cast<std::uint8_t>(of.value);
  };
  each_operation(from, [&](const Comparison& each, const Node& node) {
    const std::size_t left = from.front() - out.size() - 1;
    const std::size_t skipped = node.target == 0 ? 0 : left - from[node.target];
    out.push_back({carried_out(each.code), node.to, number(each.left), number(each.right), static_cast<std::uint16_t>(skipped)});
  });
  out.push_back({.carry_out = carried_out(kEnd)});
  return out;
}

}  // namespace fabric
