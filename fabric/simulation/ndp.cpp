#include "simulation/ndp.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace fabric {

namespace {

constexpr std::array kNdpSettings{
    QueueSetting{"window_pkts", "packets", 1, 1e6, 30, true, "packets that a flow sends unasked"},
    QueueSetting{"pull_pct", "%", 1, 100, 100, false, "share of its link that a receiver asks for"}};

// Packets in a host's queue: one in transmission, and one to follow it.
constexpr std::uint32_t kHostPkts = 2;
constexpr std::uint8_t kMaxDoublings = 16;

std::unique_ptr<TransportState> make_ndp(const TransportOptions& options, Network& network,
                                         const std::vector<FlowConfig>& flows) {
  return std::make_unique<NdpState>(options, network, flows);
}

}  // namespace

const TransportKind kNdp{"ndp", kNdpSettings, make_ndp, true, true};

// ---- The state.

NdpState::NdpState(const TransportOptions& wanted, Network& network, const std::vector<FlowConfig>& flows)
    : WholeFlows(wanted, network, flows), window_(settings.count("window_pkts")), random_(wanted.processing_seed, kNone),
      hosts_(network.router().nics().size()), nic_of_(network.ports().size(), kNone) {
  Router& router = network.router();
  const bool sprays = router.policy() == Policy::hashed || network.routes_each_packet();
  if (!sprays) throw std::invalid_argument("NDP needs routing by packet or over all shortest paths");
  for (NicId nic = 0; nic < hosts_.size(); ++nic) {
    const PortId link = router.nics()[nic].downlink;
    if (link == kNone || router.nics()[nic].uplink == kNone) throw std::invalid_argument("NDP needs hosts that do not forward");
    nic_of_[router.nics()[nic].uplink] = nic;
    const Time full = network.port(link).transmission_time(options.payload_bytes + options.header_bytes);
    hosts_[nic].interval = static_cast<Time>(static_cast<double>(full) * 100 / settings["pull_pct"]);
  }
  for (NdpFlow& flow : all) {
    flow.ranks.resize(router.paths(flow.route.source, flow.route.destination));
    std::iota(flow.ranks.begin(), flow.ranks.end(), 0U);
  }
}

std::unique_ptr<Transport> NdpState::protocol(Stack& stack) { return std::make_unique<Ndp>(stack, *this); }

SubflowReading NdpState::subflow(std::uint32_t number, Time now) const {
  const NdpFlow& of = all[number];
  const std::uint32_t acked = of.acknowledged.next() + of.acknowledged.held();
  const std::uint64_t sent = std::uint64_t{of.next} * options.payload_bytes;
  return {.window_pkts = static_cast<double>(of.in_network.size()),
          .srtt = of.rtt.srtt,
          .rtt_variance = of.rtt.variance,
          .retransmits = of.retransmits,
          .timeouts = of.timeouts,
          .acked_pkts = acked,
          .acked_bytes = std::uint64_t{acked} * options.payload_bytes,
          .unacked_pkts = of.next - acked,
          .unsent_bytes = of.size_bytes > sent ? of.size_bytes - sent : 0,
          .busy = of.started == kNever ? 0 : std::min(now, of.ended) - of.started,
          .rwnd_limited = 0,
          .established = of.started != kNever};
}

// ---- Events.

void Ndp::start(std::uint32_t number, Time now) {
  NdpFlow& flow = state_.all[number];
  flow.started = now;
  flow.credit = state_.window_;
  restart_timer(number, now);
  send_all(number, now);
}

void Ndp::received(PacketId id, Time now) {
  const Segment segment = stack_.segments[id];
  if (segment.carries == Carries::data) return arrived(id, now);
  const std::uint32_t number = stack_.network.pool()[id].owner;
  stack_.network.pool().release(id);
  answered(number, segment, now);
}

// A packet has left the queue of a host: its flows take turns.
void Ndp::may_send(PortId port, Time now) {
  const Stack::Prompt processed_while_waiting(stack_);
  NdpHost& host = state_.hosts_[state_.nic_of_[port]];
  while (!host.senders.empty()) {
    const std::uint32_t number = host.senders.front();
    NdpFlow& flow = state_.all[number];
    if (host_is_full(flow, now)) return stack_.await_departure(port);
    host.senders.pop_front();
    flow.waits = false;
    if (flow.credit == 0 || !has_data(flow)) continue;
    transmit(number, now);
    if (flow.credit == 0 || !has_data(flow)) continue;
    flow.waits = true;
    host.senders.push_back(number);
  }
}

void Ndp::expired(Alarm what, std::uint32_t owner, PacketId id, Time now) {
  if (what == Alarm::pacing) return pull(owner, now);
  if (stack_.timers.expires(state_.all[owner].retransmission, what, id, owner, now)) timed_out(owner, now);
}

// ---- The sender.

// Sends until the credit is used, there is no data left, or the host's queue is full.
void Ndp::send_all(std::uint32_t number, Time now) {
  NdpFlow& flow = state_.all[number];
  while (!flow.waits && flow.credit != 0 && has_data(flow)) {
    NdpHost& host = state_.hosts_[flow.route.source];
    if (!host.senders.empty() || host_is_full(flow, now)) {
      if (host.senders.empty()) stack_.await_departure(flow.route.forward.ports[0]);
      flow.waits = true;
      host.senders.push_back(number);
      return;
    }
    transmit(number, now);
  }
}

bool Ndp::has_data(NdpFlow& flow) {
  while (!flow.rejected.empty() && flow.acknowledged.contains(flow.rejected.front())) flow.rejected.pop();
  return !flow.rejected.empty() || flow.next != flow.segments;
}

bool Ndp::host_is_full(const NdpFlow& flow, Time now) {
  return stack_.network.port(flow.route.forward.ports[0]).holds(std::min(kHostPkts, stack_.options.nic_queue_pkts), now);
}

void Ndp::transmit(std::uint32_t number, Time now) {
  NdpFlow& flow = state_.all[number];
  const bool again = !flow.rejected.empty();
  const Seq seq = again ? flow.rejected.front() : flow.next++;
  if (again) {
    flow.rejected.pop();
    ++flow.retransmits;
  }
  --flow.credit;
  flow.in_network.push_back(seq);
  const PacketId id = stack_.network.pool().acquire_or_throw();
  Segment& segment = stack_.segments[id];
  segment = {.sent = stack_.clock.reading(now), .seq = seq, .dsn = flow.segments, .carries = Carries::data};
  stack_.send(id, {number, state_.packet_bytes(flow, seq), Ecn::not_ect, flow.dscp}, next_path(flow), flow.route.source,
              flow.route.destination, now);
}

// An acknowledgement, a rejection or a PULL has come.
void Ndp::answered(std::uint32_t number, const Segment& segment, Time now) {
  NdpFlow& flow = state_.all[number];
  if (flow.ended != kNever) return;
  flow.backoff = 0;
  if (segment.carries == Carries::pull) {
    if (before(flow.pulled, segment.seq)) {
      flow.credit += segment.seq - flow.pulled;
      flow.pulled = segment.seq;
    }
  } else {
    const auto sent = std::ranges::find(flow.in_network, segment.seq);
    const bool was_in_network = sent != flow.in_network.end();
    if (was_in_network) flow.in_network.erase(sent);
    if (segment.carries == Carries::acknowledgement) {
      flow.rtt.sample(std::max<Time>(stack_.clock.reading(now) - segment.sent, 1));
      flow.acknowledged.add(segment.seq);
    } else if (was_in_network) {
      flow.rejected.push(segment.seq);
    }
  }
  if (flow.acknowledged.next() == flow.segments) {
    flow.ended = now;
    flow.retransmission.at = kNever;
    flow.in_network = {};
    flow.rejected = {};
    return stack_.ended(number, now);
  }
  restart_timer(number, now);
  send_all(number, now);
}

// Nothing was heard for long: all that was sent counts as lost.
void Ndp::timed_out(std::uint32_t number, Time now) {
  NdpFlow& flow = state_.all[number];
  ++flow.timeouts;
  flow.backoff = std::min<std::uint8_t>(static_cast<std::uint8_t>(flow.backoff + 1), kMaxDoublings);
  for (const Seq seq : flow.in_network) flow.rejected.push(seq);
  flow.in_network.clear();
  flow.credit = std::max(flow.credit, state_.window_);
  restart_timer(number, now);
  send_all(number, now);
}

void Ndp::restart_timer(std::uint32_t number, Time now) {
  NdpFlow& flow = state_.all[number];
  const Time wait = std::min(stack_.options.min_rto_ps << flow.backoff, stack_.options.max_rto_ps);
  stack_.timers.set(flow.retransmission, Alarm::retransmission, number, stack_.clock.after(now, wait));
}

// Each round takes every path once.
Path Ndp::next_path(NdpFlow& flow) {
  if (stack_.network.routes_each_packet()) return flow.route.forward;
  if (flow.turn == 0) {
    for (auto left = static_cast<std::uint32_t>(flow.ranks.size()); left > 1; --left) {
      std::swap(flow.ranks[left - 1], flow.ranks[state_.random_.below(left)]);
    }
  }
  const std::uint32_t rank = flow.ranks[flow.turn];
  flow.turn = (flow.turn + 1) % flow.ranks.size();
  const Path path = stack_.network.router().path_of_rank(flow.route.source, flow.route.destination, rank);
  return path.empty() ? flow.route.forward : path;  // routing has lost the last path
}

void Ndp::rerouted(std::uint32_t number, const Path& there, const Path& back) {
  NdpFlow& flow = state_.all[number];
  flow.route.forward = there;
  flow.route.back = back;
  flow.ranks.resize(stack_.network.router().paths(flow.route.source, flow.route.destination));
  std::iota(flow.ranks.begin(), flow.ranks.end(), 0U);
  flow.turn = 0;
}

// ---- The receiver.

// A packet has come, whole or trimmed. It carries the answer.
void Ndp::arrived(PacketId id, Time now) {
  const Packet& packet = stack_.network.pool()[id];
  const std::uint32_t number = packet.owner;
  NdpFlow& flow = state_.all[number];
  const Seq seq = stack_.segments[id].seq;
  const bool whole = packet.size_bytes == state_.packet_bytes(flow, seq);
  const bool needless = flow.arrivals.contains(seq);
  if (whole && !needless) {
    flow.arrivals.add(seq);
    if (flow.arrivals.next() == flow.segments) {
      flow.completed = now;
      flow.owed = 0;
    }
  }
  if (!whole && !needless) ++flow.trimmed;
  answer(id, number, whole || needless ? Carries::acknowledgement : Carries::nack, now);
  if (!needless) owe_pull(number, now);
}

// Each packet that has come makes room for one more, unless the sender has been asked for all: what is left after its
// first window, and what was trimmed.
void Ndp::owe_pull(std::uint32_t number, Time now) {
  NdpFlow& flow = state_.all[number];
  if (flow.completed != kNever) return;
  if (flow.segments != kNone) {
    const std::uint64_t unasked = std::min(state_.window_, flow.segments);
    if (std::uint64_t{flow.asked} + flow.owed + unasked >= std::uint64_t{flow.segments} + flow.trimmed) return;
  }
  NdpHost& host = state_.hosts_[flow.route.destination];
  if (flow.owed++ == 0) host.to_pull.push_back(number);
  if (host.paced) return;
  host.paced = true;
  if (now >= host.next_pull) return pull(flow.route.destination, now);
  stack_.timers.schedule(Alarm::pacing, flow.route.destination, host.next_pull);
}

// Sends the next PULL of a host, if one waits.
void Ndp::pull(NicId nic, Time now) {
  NdpHost& host = state_.hosts_[nic];
  while (!host.to_pull.empty() && state_.all[host.to_pull.front()].owed == 0) host.to_pull.pop_front();
  if (host.to_pull.empty()) {
    host.paced = false;
    return;
  }
  const std::uint32_t number = host.to_pull.front();
  host.to_pull.pop_front();
  NdpFlow& flow = state_.all[number];
  if (--flow.owed != 0) host.to_pull.push_back(number);
  host.next_pull = now + host.interval;
  stack_.timers.schedule(Alarm::pacing, nic, host.next_pull);
  const PacketId id = stack_.network.pool().acquire_or_throw();
  stack_.segments[id].seq = ++flow.asked;
  answer(id, number, Carries::pull, now);
}

// Sends this packet back to the sender, along any path.
void Ndp::answer(PacketId id, std::uint32_t number, Carries carries, Time now) {
  const NdpFlow& flow = state_.all[number];
  stack_.segments[id].carries = carries;
  Path path = flow.route.back;
  if (!stack_.network.routes_each_packet()) {
    const auto rank = static_cast<std::uint32_t>(state_.random_.next() >> 32);
    const Path any = stack_.network.router().path_of_rank(flow.route.destination, flow.route.source, rank);
    if (!any.empty()) path = any;
  }
  stack_.send(id, {number, stack_.options.ack_bytes, Ecn::not_ect, flow.dscp}, path, flow.route.destination,
              flow.route.source, now);
}

}  // namespace fabric
