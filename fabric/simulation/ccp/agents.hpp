// The state of all datapaths whose windows an agent sets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/prefetch.hpp"
#include "simulation/ccp/agent_link.hpp"
#include "simulation/ccp/delivery_rate.hpp"
#include "simulation/ccp/primitives.hpp"
#include "simulation/timers.hpp"
#include "simulation/state/segment.hpp"

namespace fabric {

struct SubflowDatapath {
  bool begun = false;
  bool fallen_back = false;
  std::uint32_t una = 0;  // at the last acknowledgement, as the three that follow
  std::uint32_t sacked = 0;
  std::uint32_t losses = 0;
  Seq recover = 0;
  Time next_send = 0;  // of a paced sender
  LazyAlarm pacing;
  ccp_flow flow{};
  DeliveryRate delivery;

  // What an acknowledgement reads and writes: all but most of the flow's registers.
  void prefetch() const {
    prefetch_lines(this, &flow.registers[CCP_FIELDS / 2]);
    prefetch_lines(&flow.registers[CCP_FLAG], &flow.registers[CCP_TMP]);
    const ccp_u64* const primitives = &flow.registers[CCP_PRIMITIVE];
    prefetch_lines(primitives, primitives + CCP_REPORT_US);
    prefetch_lines(&flow.zero_us, &flow.staged_controls);
  }
};

struct AgentCounters {
  std::uint64_t acknowledgements = 0;
  std::uint64_t reports = 0;
  std::uint64_t commands = 0;
};

struct Agents {
  Agents(AgentConfig config, std::size_t subflows)
      : link(std::move(config)), read(link.config().programs), datapaths(subflows) {}

  AgentLink link;
  PrimitivesRead read;
  std::vector<std::unique_ptr<SubflowDatapath>> datapaths;  // of subflows that an agent controls
  AgentCounters counters;
};

}  // namespace fabric
