// The datapaths of subflows whose windows an agent sets: what they measure, their state, and what they do with
// acknowledgements and commands.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "core/units.hpp"
#include "simulation/ccp/agent_link.hpp"
#include "simulation/ccp/fold_unit.hpp"
#include "simulation/connection.hpp"
#include "simulation/stack.hpp"

namespace fabric {

// Which measurements of acknowledgements the programs of an agent read. The others are not made.
class PrimitivesRead {
 public:
  explicit PrimitivesRead(std::span<const ccp_program> programs) {
    for (const ccp_program& program : programs) {
      for (std::uint32_t i = 0; i < program.end; ++i) {
        const ccp_instruction& each = program.code[i];
        if (each.left_is_immediate == 0) read(each.left);
        if (each.right_is_immediate == 0) read(each.right);
      }
    }
  }

  [[nodiscard]] bool has(std::size_t primitive) const { return (mask_ >> primitive & 1U) != 0; }
  [[nodiscard]] bool has_rates() const { return has(CCP_RATE_INCOMING) || has(CCP_RATE_OUTGOING); }
  [[nodiscard]] bool has_hops() const {
    return has(kHopQueueBytes) || has(kHopRate) || has(kHopLinkRate) || has(kHopIntervalNs);
  }
  [[nodiscard]] bool has_flight() const {
    return has(CCP_BYTES_IN_FLIGHT) || has(CCP_PACKETS_IN_FLIGHT) || has(CCP_BYTES_PENDING);
  }
  // Whether anything is read that counts segments which arrived in any order, or marks.
  [[nodiscard]] bool has_arrivals() const {
    return has_rates() || has(CCP_BYTES_MISORDERED) || has(CCP_PACKETS_MISORDERED) || has(CCP_PACKETS_ACKED) ||
           has(CCP_ECN_BYTES) || has(CCP_ECN_PACKETS);
  }

 private:
  void read(std::uint32_t of) {
    const std::uint32_t number = of & (CCP_REGISTERS - 1);  // as ccp_step reads it
    if (number >= CCP_PRIMITIVE && number < CCP_PRIMITIVE + kPrimitives) mask_ |= 1U << (number - CCP_PRIMITIVE);
  }

  std::uint32_t mask_ = 0;
};

// The delivery rate of a sender as Linux samples it (net/ipv4/tcp_rate.c, draft-cheng-iccrg-delivery-rate-estimation).
struct DeliverySample {
  std::uint32_t pkts = 0;
  Time sending = 0;    // 0: no sample
  Time arriving = 0;
};

class DeliveryRate {
 public:
  // Transmission number `order` leaves; all up to `arrived` are known to have arrived.
  void sent(std::uint32_t order, std::uint32_t arrived, bool idle_before, Time now) {
    if (idle_before) first_sent_ = delivered_at_ = now;
    while (order - arrived >= sent_.size()) grow();
    sent_[order & (sent_.size() - 1)] = {order, delivered_, delivered_at_, first_sent_, now};
  }

  // `fresh` packets have arrived; the latest was transmission number `order`.
  DeliverySample arrived(std::uint32_t order, std::uint32_t fresh, Time now) {
    delivered_ += fresh;
    delivered_at_ = now;
    if (sent_.empty()) return {};
    const Sent& of = sent_[order & (sent_.size() - 1)];
    if (of.order != order || fresh == 0) return {};
    first_sent_ = of.at;
    return {delivered_ - of.delivered, of.at - of.first_sent, now - of.delivered_at};
  }

 private:
  struct Sent {
    std::uint32_t order = 0;
    std::uint32_t delivered = 0;
    Time delivered_at = 0;
    Time first_sent = 0;
    Time at = 0;
  };

  void grow() {
    std::vector<Sent> larger(std::max<std::size_t>(64, sent_.size() * 2));
    for (const Sent& each : sent_) larger[each.order & (larger.size() - 1)] = each;
    sent_.swap(larger);
  }

  std::vector<Sent> sent_;
  std::uint32_t delivered_ = 0;
  Time delivered_at_ = 0;
  Time first_sent_ = 0;
};

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
  Telemetry telemetry;        // of the latest acknowledgement that brought one
  Time lowest_rtt = kNever;  // of those
};

// Of the hops of a path, the one that limits it (HPCC, SIGCOMM 2019, algorithm 1, lines 2 to 7).
struct BusiestHop {
  std::uint32_t queue_bytes = 0;  // the smaller of two readings
  double rate = 0;                // bytes per second
  double link_rate = 0;           // bytes per second
  Time interval = 0;              // between the readings; 0: there are no two of the same path
};

// `rtt` is the path's round-trip time without queues.
BusiestHop busiest_hop(const Telemetry& before, const Telemetry& now, Time rtt);

struct AgentCounters {
  std::uint64_t acknowledgements = 0;
  std::uint64_t reports = 0;
  std::uint64_t commands = 0;
};

// The state of all datapaths, and the link to their agent.
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

  // Sets an alarm for what is on its way to the agent, or back.
  void schedule(Timers& timers) {
    const Time due = link.next_due();
    if (link.scheduled || due == kNever) return;
    link.scheduled = true;
    timers.schedule(Alarm::agent, kNone, due);
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
  BusiestHop hop;  // of the acknowledgement that is being taken
  std::vector<SubflowRest> rest;  // of each subflow
  FoldUnit unit;
  AgentLink link;

 private:
  bool watches_sending_;
  std::vector<ccp_u64> far_;  // registers of each subflow
};

// The datapath of one subflow: it folds acknowledgements, reports, and takes commands. Cheap to make: all state is in
// Agents.
class Datapath {
 public:
  Datapath(Stack& stack, Agents& agents, std::uint32_t number, const Connection& connection, const SenderState& sender,
           PathState& path)
      : stack_(stack), agents_(agents), number_(number), connection_(connection), sender_(sender), path_(path) {}

  // What switches have written into the packet that this acknowledgement answers.
  void read_hops(PacketId id, Time now);
  // After loss recovery has seen the acknowledgement.
  void acknowledged(const Segment& ack, Time now);
  void timed_out(Time now);
  void closed(Time now);
  // Whether pacing lets a segment leave. Otherwise the pacing timer is set.
  [[nodiscard]] bool may_send(Time now) { return state_.rate == 0 || is_due(now); }
  void sent(std::uint32_t bytes, Time now) {
    if (agents_.read.has_rates()) record_sent(now);
    if (state_.rate != 0) pace(bytes, now);
  }
  // Returns whether the window may have changed.
  [[nodiscard]] bool carry_out(const AgentCommand& command);

 private:
  void begin(Time now);
  void take_staged(Time now);
  void fold(Time now);
  void measure(const Segment& ack, Time now);
  void measure_arrivals(const Segment& ack, std::uint32_t fresh, Time now);
  void measure_flight();
  void measure_hop();
  void measure_rates(const DeliverySample& sample);
  [[nodiscard]] std::uint32_t take_losses();
  void tell(AgentEventKind kind, Time now);
  void use_window();
  [[nodiscard]] bool is_due(Time now);
  void record_sent(Time now);
  void pace(std::uint32_t bytes, Time now);
  [[nodiscard]] ccp_u64 micros(Time now) const;
  [[nodiscard]] std::uint32_t mss() const { return connection_.payload_bytes; }

  Stack& stack_;
  Agents& agents_;
  std::uint32_t number_;
  const Connection& connection_;
  const SenderState& sender_;
  PathState& path_;
  SubflowDatapath& state_ = agents_.datapaths[number_];
  SubflowRest& rest_ = agents_.rest[number_];
  FoldUnit& unit_ = agents_.unit;  // works for this subflow between `load` and `store`
};

}  // namespace fabric
