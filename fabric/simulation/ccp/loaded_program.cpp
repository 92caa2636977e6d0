#include "simulation/ccp/loaded_program.hpp"

namespace fabric {

bool run(const Code& code) {
  for (const Operation* now = code.operations.data();; ++now) {
    if (now->code == kEnd) return true;
    const ccp_u64 a = *now->left;
    const ccp_u64 b = *now->right;
    ccp_u64 value = b;
    switch (now->code) {
      case kUnlessGreater:
        if (a <= b) now += now->skipped;
        continue;
      case kUnlessEqual:
        if (a != b) now += now->skipped;
        continue;
      case CCP_OP_ADD:
        value = a + b;
        if (value < a) return false;
        break;
      case CCP_OP_BIND:
        break;
      case CCP_OP_DEF:
        if (b == CCP_INFINITE_IMMEDIATE) value = ~0ULL;
        break;
      case CCP_OP_DIV:
        if (b == 0) return false;
        value = a / b;
        break;
      case CCP_OP_EQUIV:
        value = a == b ? 1 : 0;
        break;
      case CCP_OP_EWMA:
        if (*now->to != 0) value = (a * *now->to + (10 - a) * b) / 10;
        break;
      case CCP_OP_GT:
        value = a > b ? 1 : 0;
        break;
      case CCP_OP_IF:
        if (a == 0) continue;
        break;
      case CCP_OP_MAX:
        value = a > b ? a : b;
        break;
      case CCP_OP_MAXWRAP:
        value = ccp_later(a, b);
        break;
      case CCP_OP_MIN:
        value = a < b ? a : b;
        break;
      case CCP_OP_MUL:
        value = a * b;
        if (value < a && b > 0) return false;
        break;
      case CCP_OP_NOTIF:
        if (a != 0) continue;
        break;
      case CCP_OP_SUB:
        value = a - b;
        if (value > a) return false;
        break;
      default:
        return false;
    }
    *now->to = value;
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
