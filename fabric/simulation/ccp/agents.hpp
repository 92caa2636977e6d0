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
#include "simulation/ccp/agent_link.hpp"
#include "simulation/ccp/delivery_rate.hpp"
#include "simulation/ccp/fold_unit.hpp"
#include "simulation/ccp/primitives.hpp"
#include "simulation/timers.hpp"
#include "simulation/state/segment.hpp"

namespace fabric {

// What most acknowledgements read and write, in one cache line. All is 0 at first.
struct alignas(64) SubflowDatapath {
  FoldUnit::Near registers;
  ccp_u64 window;  // as in ccp_flow, like `rate`, `zero_us` and `program`
  std::uint32_t una;  // at the last acknowledgement, as the two that follow
  std::uint32_t sacked;
  ccp_u64 rate;
  std::uint32_t losses;
  std::uint8_t program;
  bool begun;
  bool fallen_back;
  bool staged;  // something waits in SubflowRest
  ccp_u64 zero_us;
};
static_assert(sizeof(SubflowDatapath) == 64);

struct SubflowRest {
  // As in ccp_flow; the first three are the fallback's.
  ccp_u64 ssthresh = 0;
  ccp_u64 credit = 0;
  ccp_u64 cut_us = 0;
  std::uint32_t staged_program = 0;
  std::uint32_t staged_controls = 0;
  std::array<ccp_u64, CCP_FIELDS> staged{};
  Seq recover = 0;     // at the last acknowledgement
  Time next_send = 0;  // of a paced sender
  LazyAlarm pacing;
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
      : read(config.programs), report_us(config.report_us), datapaths(subflows), rest(subflows), unit(config.programs),
        link(std::move(config)), watches_sending_(read.has_rates()), far_(subflows * unit.far()) {}

  // Lets the unit work for this subflow, until `store`.
  void load(std::uint32_t subflow) {
    const SubflowDatapath& from = datapaths[subflow];
    ccp_flow& flow = unit.flow;
    unit.load(from.registers, far_.data() + subflow * unit.far());
    flow.window = from.window;
    flow.rate = from.rate;
    flow.zero_us = from.zero_us;
    flow.program = from.program;
    if (!from.fallen_back) return;
    flow.ssthresh = rest[subflow].ssthresh;
    flow.credit = rest[subflow].credit;
    flow.cut_us = rest[subflow].cut_us;
  }

  void store(std::uint32_t subflow) {
    SubflowDatapath& to = datapaths[subflow];
    const ccp_flow& flow = unit.flow;
    unit.store(to.registers, far_.data() + subflow * unit.far());
    to.window = flow.window;
    to.rate = flow.rate;
    watches_sending_ |= flow.rate != 0;
    to.zero_us = flow.zero_us;
    to.program = static_cast<std::uint8_t>(flow.program);
    if (!to.fallen_back) return;
    rest[subflow].ssthresh = flow.ssthresh;
    rest[subflow].credit = flow.credit;
    rest[subflow].cut_us = flow.cut_us;
  }

  // The same for what is staged.
  void load_staged(std::uint32_t subflow) {
    const SubflowRest& from = rest[subflow];
    unit.flow.staged_program = from.staged_program;
    unit.flow.staged_controls = from.staged_controls;
    std::ranges::copy(from.staged, unit.flow.staged);
  }
  void store_staged(std::uint32_t subflow) {
    SubflowRest& to = rest[subflow];
    to.staged_program = unit.flow.staged_program;
    to.staged_controls = unit.flow.staged_controls;
    std::ranges::copy(unit.flow.staged, to.staged.begin());
    datapaths[subflow].staged = to.staged_program != 0 || to.staged_controls != 0;
  }

  // What an acknowledgement reads and writes.
  void prefetch(std::uint32_t subflow) const {
    prefetch_to_write(&datapaths[subflow]);
    if (unit.far() != 0) prefetch_to_write(&far_[subflow * unit.far()]);
  }

  // Whether datapaths need to know what leaves: some program reads rates, or some flow was ever paced.
  [[nodiscard]] bool watch_sending() const { return watches_sending_; }

  PrimitivesRead read;
  std::uint64_t report_us;
  std::vector<SubflowDatapath, HugePages<SubflowDatapath>> datapaths;  // of each subflow
  AgentCounters counters;
  std::vector<SubflowRest> rest;  // of each subflow
  FoldUnit unit;
  AgentLink link;

 private:
  bool watches_sending_;
  std::vector<ccp_u64> far_;  // registers of each subflow
};

}  // namespace fabric
