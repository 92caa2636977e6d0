// The state of all datapaths whose windows an agent sets.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/prefetch.hpp"
#include "core/virtual_array.hpp"
#include "simulation/ccp/agent_link.hpp"
#include "simulation/ccp/delivery_rate.hpp"
#include "simulation/ccp/fold_unit.hpp"
#include "simulation/ccp/primitives.hpp"
#include "simulation/timers.hpp"
#include "simulation/state/segment.hpp"

namespace fabric {

// What most acknowledgements read and write is in the first cache line. The flow's registers are in Agents.
struct alignas(64) SubflowDatapath {
  // As in ccp_flow:
  ccp_u64 zero_us = 0;
  ccp_u64 window = 0;
  ccp_u64 rate = 0;
  std::uint32_t program = 0;
  std::uint32_t staged_program = 0;
  std::uint32_t staged_controls = 0;
  std::uint32_t una = 0;  // at the last acknowledgement, as the three that follow
  std::uint32_t sacked = 0;
  std::uint32_t losses = 0;
  Seq recover = 0;
  bool begun = false;
  bool fallen_back = false;
  // As in ccp_flow, of the fallback:
  alignas(64) ccp_u64 ssthresh = 0;
  ccp_u64 credit = 0;
  ccp_u64 cut_us = 0;
  Time next_send = 0;  // of a paced sender
  LazyAlarm pacing;
  std::array<ccp_u64, CCP_FIELDS> staged{};
  DeliveryRate delivery;
};

struct AgentCounters {
  std::uint64_t acknowledgements = 0;
  std::uint64_t reports = 0;
  std::uint64_t commands = 0;
};

class Agents {
 public:
  Agents(AgentConfig config, std::size_t subflows)
      : link(std::move(config)), read(link.config().programs), unit(link.config().programs), datapaths(subflows),
        stride_((unit.kept() + kLine - 1) / kLine * kLine), registers_(std::max<std::size_t>(1, subflows * stride_)) {}

  // Lets the unit work for this subflow, until `store`.
  void load(std::uint32_t subflow) {
    const SubflowDatapath& from = datapaths[subflow];
    ccp_flow& flow = unit.flow;
    flow.zero_us = from.zero_us;
    flow.window = from.window;
    flow.rate = from.rate;
    flow.program = from.program;
    flow.staged_program = from.staged_program;
    flow.staged_controls = from.staged_controls;
    unit.load(registers_of(subflow));
    if (from.staged_controls != 0) std::ranges::copy(from.staged, flow.staged);
    if (!from.fallen_back) return;
    flow.ssthresh = from.ssthresh;
    flow.credit = from.credit;
    flow.cut_us = from.cut_us;
  }

  void store(std::uint32_t subflow) {
    SubflowDatapath& to = datapaths[subflow];
    const ccp_flow& flow = unit.flow;
    to.zero_us = flow.zero_us;
    to.window = flow.window;
    to.rate = flow.rate;
    to.program = flow.program;
    to.staged_program = flow.staged_program;
    to.staged_controls = flow.staged_controls;
    unit.store(registers_of(subflow));
    if (flow.staged_controls != 0) std::ranges::copy(flow.staged, to.staged.begin());
    if (!to.fallen_back) return;
    to.ssthresh = flow.ssthresh;
    to.credit = flow.credit;
    to.cut_us = flow.cut_us;
  }

  // What an acknowledgement reads and writes.
  void prefetch(std::uint32_t subflow) const {
    prefetch_to_write(&datapaths[subflow]);
    for (std::size_t i = 0; i < stride_; i += kLine) prefetch_to_write(&registers_[subflow * stride_ + i]);
  }

  AgentLink link;
  PrimitivesRead read;
  FoldUnit unit;
  std::vector<SubflowDatapath, HugePages<SubflowDatapath>> datapaths;  // of each subflow
  AgentCounters counters;

 private:
  static constexpr std::size_t kLine = 64 / sizeof(ccp_u64);

  ccp_u64* registers_of(std::uint32_t subflow) { return &registers_[subflow * stride_]; }

  std::size_t stride_;  // whole cache lines
  VirtualArray<ccp_u64> registers_;  // that are kept, of each subflow
};

}  // namespace fabric
