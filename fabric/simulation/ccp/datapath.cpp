#include "simulation/ccp/datapath.hpp"

#include <algorithm>

namespace fabric {

namespace {

ccp_u64 per_second(std::uint64_t bytes, Time interval) {
  if (interval <= 0) return 0;
  return static_cast<ccp_u64>(static_cast<double>(bytes) * (static_cast<double>(kSecond) / static_cast<double>(interval)));
}

}  // namespace

BusiestHop busiest_hop(const Telemetry& before, const Telemetry& now, Time rtt) {
  BusiestHop out;
  double most = -1;
  if (before.hops != now.hops) return out;
  for (std::uint8_t i = 0; i < now.hops; ++i) {
    const HopReading& was = before.readings[i];
    const HopReading& is = now.readings[i];
    const Time interval = is.at - was.at;
    if (is.port != was.port || interval <= 0) return {};
    const double seconds = static_cast<double>(interval) / static_cast<double>(kSecond);
    const double rate = static_cast<double>(is.sent_bytes - was.sent_bytes) / seconds;
    const double link_rate = static_cast<double>(is.rate_bps) / 8;
    const std::uint32_t queue_bytes = std::min(is.queue_bytes, was.queue_bytes);
    const double in_flight = link_rate * static_cast<double>(rtt) / static_cast<double>(kSecond);
    const double load = queue_bytes / in_flight + rate / link_rate;
    if (load <= most) continue;
    most = load;
    out = {queue_bytes, rate, link_rate, interval};
  }
  return out;
}

// An acknowledgement that another has overtaken tells nothing new.
void Datapath::read_hops(PacketId id, Time now) {
  const Telemetry& telemetry = stack_.network.pool().telemetry(id);
  agents_.hop = {};
  if (!connection_.control->by_agent || telemetry.hops == 0) return;
  rest_.lowest_rtt = std::min(rest_.lowest_rtt, std::max<Time>(stack_.clock.reading(now) - stack_.segments[id].sent, 1));
  if (rest_.telemetry.hops != 0 && telemetry.readings[0].at < rest_.telemetry.readings[0].at) return;
  agents_.hop = busiest_hop(rest_.telemetry, telemetry, rest_.lowest_rtt);
  rest_.telemetry = telemetry;
}

void Datapath::acknowledged(const Segment& ack, Time now) {
  agents_.load(number_);
  if (!state_.begun) begin(now);
  measure(ack, now);
  fold(now);
  agents_.store(number_);
}

void Datapath::begin(Time now) {
  const double bytes = path_.window * mss();
  ccp_begin(&unit_.flow, &unit_.program(), static_cast<ccp_u64>(bytes), micros(now));
  state_.begun = true;
  tell(AgentEventKind::created, now);
}

void Datapath::measure(const Segment& ack, Time now) {
  const Scoreboard& board = sender_.board;
  ccp_u64* const of = &unit_.flow.registers[CCP_PRIMITIVE];
  const std::uint32_t fresh = board.una() - state_.una;
  if (agents_.read.has_arrivals()) measure_arrivals(ack, fresh, now);
  state_.una = board.una();
  of[CCP_BYTES_ACKED] = std::uint64_t{fresh} * mss();
  of[CCP_LOST_PACKETS] = take_losses();
  if (agents_.read.has_flight()) measure_flight();
  if (agents_.read.has_hops()) measure_hop();
  const Time rtt = stack_.clock.reading(now) - ack.sent;
  of[CCP_RTT_SAMPLE] = std::max<ccp_u64>(1, static_cast<ccp_u64>(rtt / kMicrosecond));
  of[CCP_WAS_TIMEOUT] = 0;
}

// Of `fresh` segments in order, and of those that have arrived beyond a gap.
void Datapath::measure_arrivals(const Segment& ack, std::uint32_t fresh, Time now) {
  const std::uint32_t sacked = sender_.board.sacked();
  const std::uint32_t delivered = fresh + sacked - state_.sacked;
  const std::uint32_t misordered = sacked > state_.sacked ? sacked - state_.sacked : 0;
  state_.sacked = sacked;
  ccp_u64* const of = &unit_.flow.registers[CCP_PRIMITIVE];
  of[CCP_BYTES_MISORDERED] = std::uint64_t{misordered} * mss();
  of[CCP_ECN_PACKETS] = ack.marked ? delivered : 0;
  of[CCP_ECN_BYTES] = of[CCP_ECN_PACKETS] * mss();
  of[CCP_PACKETS_ACKED] = delivered - misordered;
  of[CCP_PACKETS_MISORDERED] = misordered;
  if (agents_.read.has_rates()) measure_rates(rest_.delivery.arrived(ack.order, delivered, now));
}

void Datapath::measure_flight() {
  const Scoreboard& board = sender_.board;
  ccp_u64* const of = &unit_.flow.registers[CCP_PRIMITIVE];
  const std::uint32_t flight = stack_.options.sack ? board.pipe() : board.outstanding();
  of[CCP_PACKETS_IN_FLIGHT] = flight;
  of[CCP_BYTES_IN_FLIGHT] = std::uint64_t{flight} * mss();
  if (!agents_.read.has(CCP_BYTES_PENDING)) return;
  of[CCP_BYTES_PENDING] = unsent_bytes(connection_, sender_, stack_.options.send_buffer) + std::uint64_t{board.outstanding()} * mss();
}

void Datapath::measure_hop() {
  const BusiestHop& hop = agents_.hop;
  ccp_u64* const of = &unit_.flow.registers[CCP_PRIMITIVE];
  of[kHopQueueBytes] = hop.queue_bytes;
  of[kHopRate] = static_cast<ccp_u64>(hop.rate);
  of[kHopLinkRate] = static_cast<ccp_u64>(hop.link_rate);
  of[kHopIntervalNs] = static_cast<ccp_u64>(hop.interval / kNanosecond);
}

void Datapath::measure_rates(const DeliverySample& sample) {
  ccp_u64* const of = &unit_.flow.registers[CCP_PRIMITIVE];
  of[CCP_RATE_OUTGOING] = of[CCP_RATE_INCOMING] = 0;
  if (sample.sending <= 0 || sample.arriving <= 0) return;
  const std::uint64_t bytes = std::uint64_t{sample.pkts} * mss();
  of[CCP_RATE_OUTGOING] = per_second(bytes, sample.sending);
  of[CCP_RATE_INCOMING] = per_second(bytes, sample.arriving);
}

// Segments found lost since the last call. Without SACK that is one for each fast recovery.
std::uint32_t Datapath::take_losses() {
  if (!stack_.options.sack) {
    const bool recovers = sender_.recovery == Recovery::fast && sender_.recover != rest_.recover;
    if (recovers) rest_.recover = sender_.recover;
    return recovers ? 1 : 0;
  }
  const std::uint32_t losses = sender_.board.losses() - state_.losses;
  state_.losses += losses;
  return losses;
}

void Datapath::take_staged(Time now) {
  agents_.load_staged(number_);
  if (ccp_take_program(&unit_.flow) != 0) ccp_change(&unit_.flow, &unit_.program(), micros(now));
  ccp_take_controls(&unit_.flow);
  agents_.store_staged(number_);
}

void Datapath::fold(Time now) {
  if (state_.staged) take_staged(now);
  ccp_u64* const of = &unit_.flow.registers[CCP_PRIMITIVE];
  of[CCP_NOW] = micros(now);
  of[CCP_REPORT_US] = agents_.report_us != 0 ? agents_.report_us : of[CCP_RTT_SAMPLE];
  const auto srtt_us = static_cast<ccp_u64>(sender_.rtt.srtt / kMicrosecond);
  ++agents_.counters.acknowledgements;
  const bool reports =
      ccp_acknowledged(&unit_.flow, &unit_.program(), mss(), of[CCP_NOW], srtt_us, state_.fallen_back ? 1 : 0) != 0;
  use_window();
  if (!reports) return;
  ++agents_.counters.reports;
  if (!state_.fallen_back) tell(AgentEventKind::measured, now);
  ccp_reported(&unit_.flow, &unit_.program());
}

// In packets, most windows stay the same. Comparing is predicted; all that follows would wait for a division.
void Datapath::use_window() {
  auto packets = static_cast<ccp_u64>(static_cast<std::int64_t>(path_.window));
  if (unit_.flow.window - packets * mss() >= mss()) packets = unit_.flow.window / mss();
  path_.window = static_cast<double>(packets);
}

void Datapath::tell(AgentEventKind kind, Time now) {
  AgentEvent event{.kind = kind, .subflow = number_, .mss = mss(), .program = unit_.flow.program,
                   .at = stack_.clock.reading(now), .window_bytes = unit_.flow.window};
  if (kind == AgentEventKind::measured) {
    const ccp_u64* const fields = &unit_.flow.registers[CCP_REPORT];
    std::copy(fields, fields + CCP_FIELDS, event.fields.begin());
  }
  agents_.link.send(event, now);
  agents_.schedule(stack_.timers);
}

void Datapath::timed_out(Time now) {
  if (!state_.begun) {
    path_.window = 1;
    return;
  }
  agents_.load(number_);
  state_.losses = sender_.board.losses();
  ccp_timed_out(&unit_.flow, mss());
  rest_.ssthresh = unit_.flow.ssthresh;
  ccp_u64* const of = &unit_.flow.registers[CCP_PRIMITIVE];
  std::fill(of, of + kPrimitives, 0);
  of[CCP_RTT_SAMPLE] = CCP_NO_RTT;
  of[CCP_WAS_TIMEOUT] = 1;
  fold(now);
  agents_.store(number_);
}

void Datapath::closed(Time now) {
  rest_.pacing.at = kNever;
  if (!state_.begun) return;
  agents_.load(number_);
  tell(AgentEventKind::closed, now);
}

bool Datapath::is_due(Time now) {
  if (rest_.next_send <= now) return true;
  stack_.timers.set(rest_.pacing, Alarm::pacing, number_, rest_.next_send);
  return false;
}

void Datapath::record_sent(Time now) {
  const bool idle = sender_.board.outstanding() <= 1;  // the segment itself is outstanding by now
  rest_.delivery.sent(sender_.transmissions, sender_.delivered_order, idle, now);
}

void Datapath::pace(std::uint32_t bytes, Time now) {
  const double seconds = static_cast<double>(bytes) / static_cast<double>(state_.rate);
  const Time wait = static_cast<Time>(std::min(seconds, 1.0) * static_cast<double>(kSecond));
  rest_.next_send = std::max(rest_.next_send, now) + wait;
}

bool Datapath::carry_out(const AgentCommand& command) {
  ++agents_.counters.commands;
  agents_.load(number_);
  agents_.load_staged(number_);
  ccp_flow& flow = unit_.flow;
  if (command.program) ccp_stage_program(&flow, *command.program);
  for (const auto& [number, value] : command.controls) ccp_stage_control(&flow, number, value);
  agents_.store_staged(number_);
  const bool obeys = !state_.fallen_back && !command.fall_back;
  if (obeys && command.window_bytes) ccp_command_window(&flow, *command.window_bytes, mss());
  if (obeys && command.rate_bytes_per_s) flow.rate = *command.rate_bytes_per_s;
  agents_.store(number_);
  if (command.fall_back) state_.fallen_back = true;
  if (obeys) use_window();
  return obeys;
}

ccp_u64 Datapath::micros(Time now) const { return static_cast<ccp_u64>(stack_.clock.reading(now) / kMicrosecond); }

}  // namespace fabric
