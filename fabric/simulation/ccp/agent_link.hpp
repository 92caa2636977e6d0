// Between datapaths and their agent, a program of the same host: what is on its way, and for how long.
//
// An event reaches the agent and its commands return after `delay` and a random share of `jitter`, both ways together,
// in order. The agent sees a batch of events at once: nothing it does depends on when it is called.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/random.hpp"
#include "core/units.hpp"
#include "simulation/ccp/fold_unit.hpp"

namespace fabric {

enum class AgentEventKind : std::uint8_t { created, measured, closed };

struct AgentEvent {
  AgentEventKind kind = AgentEventKind::created;
  std::uint32_t subflow = 0;
  std::uint32_t mss = 0;
  std::uint32_t program = 0;  // the number of the flow's program
  Time at = 0;   // on the hosts' clock
  Time due = 0;  // when its commands arrive
  std::uint64_t window_bytes = 0;
  std::array<std::uint64_t, CCP_FIELDS> fields{};
};

struct AgentCommand {
  std::uint32_t event = 0;  // the position in the batch of the event that it answers
  std::uint32_t subflow = 0;
  std::optional<std::uint64_t> window_bytes;
  std::optional<std::uint64_t> rate_bytes_per_s;
  std::optional<std::uint32_t> program;  // by number
  std::vector<std::pair<std::uint32_t, std::uint64_t>> controls;  // by number
  bool fall_back = false;
};

using AgentCallback = std::function<std::vector<AgentCommand>(std::span<const AgentEvent>)>;

struct AgentConfig {
  std::vector<ccp_program> programs;  // flows begin with the first
  Time delay = 0;
  Time jitter = 0;
  std::uint64_t report_us = 0;  // time between reports; 0: a round trip
  std::uint32_t seed = 0;
  AgentCallback agent{};
};

class AgentLink {
 public:
  explicit AgentLink(AgentConfig config) : config_(std::move(config)), random_(config_.seed, 0) {}

  [[nodiscard]] const AgentConfig& config() const { return config_; }

  void send(AgentEvent event, Time now) {
    const Time jitter = config_.jitter == 0 ? 0 : static_cast<Time>(random_.next() % static_cast<std::uint64_t>(config_.jitter));
    latest_ = std::max(latest_, now + config_.delay + jitter);
    event.due = latest_;
    events_.push_back(event);
  }

  // When something is due, kNever if nothing is on its way.
  [[nodiscard]] Time next_due() const {
    if (!commands_.empty()) return commands_.front().due;
    return events_.empty() ? kNever : events_.front().due;
  }

  // Calls `apply` with each command that has arrived.
  template <class Apply>
  void deliver(Time now, Apply apply) {
    if (!events_.empty() && events_.front().due <= now) call_agent();
    while (!commands_.empty() && commands_.front().due <= now) {
      const AgentCommand command = std::move(commands_.front().command);
      commands_.pop_front();
      apply(command);
    }
  }

  bool scheduled = false;  // an alarm is set for `next_due`

 private:
  struct Returning {
    Time due;
    AgentCommand command;
  };

  void call_agent() {
    for (AgentCommand& command : config_.agent(events_)) {
      const Time due = events_.at(command.event).due;
      commands_.push_back({due, std::move(command)});
    }
    events_.clear();
  }

  AgentConfig config_;
  Random random_;
  std::vector<AgentEvent> events_;  // that the agent has not seen
  std::deque<Returning> commands_;
  Time latest_ = 0;
};

}  // namespace fabric
