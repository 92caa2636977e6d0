#include "simulation/simulation.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/prefetch.hpp"

namespace fabric {

Simulation::Simulation(NetworkConfig network, TransportOptions options, const std::vector<FlowConfig>& flows,
                       const std::vector<DatagramConfig>& datagrams, const std::optional<NoiseConfig>& noise)
    : options_(options), network_(std::move(network)), segments_(network_.pool().capacity()), waiting_(network_.ports().size()) {
  network_.prefer_huge_pages();
  segments_.prefer_huge_pages();
  std::size_t count = 0;
  for (const FlowConfig& flow : flows) count += flow.subflows.size();
  connections_.reserve(flows.size());
  subflows_.reserve(count);
  paths_.resize(count);
  clocks_.resize(count);
  for (const FlowConfig& flow : flows) add(flow);
  for (const DatagramConfig& wanted : datagrams) add(wanted);
  plan_starts();
  if (noise) noise_.emplace(*noise);
}

void Simulation::add(const FlowConfig& flow) {
  const auto number = static_cast<std::uint32_t>(connections_.size());
  Connection& connection = connections_.emplace_back();
  connection.first = static_cast<std::uint32_t>(subflows_.size());
  connection.count = static_cast<std::uint32_t>(flow.subflows.size());
  connection.control = flow.congestion_control;
  connection.size_bytes = flow.size_bytes;
  const std::uint16_t mptcp_bytes = connection.multipath() ? options_.mptcp_bytes : std::uint16_t{0};
  if (options_.payload_bytes <= mptcp_bytes) throw std::invalid_argument("MPTCP's options leave no room for payload");
  connection.payload_bytes = static_cast<std::uint16_t>(options_.payload_bytes - mptcp_bytes);
  connection.start = flow.start;
  connection.dscp = dscp_of(flow.dscp);
  if (flow.start < 0) throw std::invalid_argument("a flow starts before the simulation does");
  if (flow.after == kNone) {
    by_start_.push_back(number);
  } else {
    if (flow.after >= number) throw std::invalid_argument("a flow waits for one that comes later");
    Connection& awaited = connections_[flow.after];
    if (awaited.then != kNone) throw std::invalid_argument("two flows wait for the same one");
    awaited.then = number;
  }
  if (flow.size_bytes != 0) {
    const std::uint64_t segments = (flow.size_bytes + connection.payload_bytes - 1) / connection.payload_bytes;
    if (segments >= kNone / 2) throw std::invalid_argument("a flow has more than 2^31 segments");
    connection.segments = static_cast<Seq>(segments);
  }
  if (options_.receive_buffer_pkts != 0) connection.window_end = options_.receive_buffer_pkts;
  for (const SubflowConfig& wanted : flow.subflows) {
    Subflow& subflow = subflows_.emplace_back();
    subflow.connection = number;
    subflow.number = static_cast<std::uint32_t>(subflows_.size() - 1 - connection.first);
    subflow.source = wanted.source;
    subflow.destination = wanted.destination;
    subflow.owns_first_port = network_.router().nics().at(wanted.source).uplink != kNone;
    subflow.forward = network_.router().path(wanted.source, wanted.destination, wanted.hash);
    subflow.back = network_.router().path(wanted.destination, wanted.source, wanted.back_hash);
    if (subflow.forward.empty() || subflow.back.empty()) {
      throw std::invalid_argument("no path joins the ends of a subflow");
    }
    subflow.sender.rto = options_.handshake ? options_.initial_rto : after_handshake(subflow);
    subflow.sender.ssthresh = options_.initial_ssthresh;
    subflow.sender.dup_threshold = options_.dup_threshold;
    paths_[subflows_.size() - 1].window = options_.initial_window;
  }
}

// Of connections that are open when their data comes: a handshake on the idle path was timed (RFC 6298, section 2).
Time Simulation::after_handshake(const Subflow& subflow) {
  Time round_trip = 0;
  for (const Path* path : {&subflow.forward, &subflow.back}) {
    for (const PortId id : path->span()) {
      const Port& port = network_.port(id);
      round_trip += port.transmission_time(options_.ack_bytes) + port.delay();
    }
  }
  return std::max(options_.min_rto, std::min(3 * round_trip, options_.initial_rto));
}

std::uint8_t Simulation::dscp_of(std::uint8_t wanted) {
  if (wanted > kDscpBits) throw std::invalid_argument("a class of service has six bits: 0 to 63");
  return wanted;
}

// One alarm stands for all flows that have not started.
void Simulation::plan_starts() {
  std::stable_sort(by_start_.begin(), by_start_.end(),
                   [this](std::uint32_t a, std::uint32_t b) { return connections_[a].start < connections_[b].start; });
  if (!by_start_.empty()) ring(Alarm::start, kNone, connections_[by_start_.front()].start);
}

void Simulation::set_path(std::uint32_t number, const Path& there, const Path& back) {
  Subflow& subflow = subflows_.at(number);
  if (there.empty() || back.empty()) throw std::invalid_argument("a path passes no link");
  for (const Path* path : {&there, &back}) {
    for (const PortId port : path->span()) (void)network_.ports().at(port);
  }
  subflow.forward = there;
  subflow.back = back;
}

void Simulation::set_path_ranks(std::uint32_t number, std::uint32_t there, std::uint32_t back) {
  const Subflow& subflow = subflows_.at(number);
  const Router& router = network_.router();
  set_path(number, router.path_of_rank(subflow.source, subflow.destination, there),
           router.path_of_rank(subflow.destination, subflow.source, back));
}

void Simulation::run_until(Time limit) {
  if (noise_) {
    run_with_stalls(limit);
  } else {
    network_.run_until(limit, *this);
  }
  network_.settle(limit);
  now_ = limit;
}

void Simulation::start_due(Time now) {
  for (; started_ != by_start_.size(); ++started_) {
    const std::uint32_t number = by_start_[started_];
    if (connections_[number].start > now) return ring(Alarm::start, kNone, connections_[number].start);
    start(number, now);
  }
}

void Simulation::start(std::uint32_t number, Time now) {
  Connection& connection = connections_[number];
  connection.open = true;
  connection.started = now;
  if (options_.handshake) return connect(connection.first, now);
  subflows_[connection.first].sender.established = true;
  let_join(number, now);
  if (connection.alone) {
    hand_out(number, now);
    keep_time(connection.first, now);
  }
}

// The first subflow is established: the others join, now or when it is time to.
void Simulation::let_join(std::uint32_t number, Time now) {
  Connection& connection = connections_[number];
  connection.alone = true;
  const bool waits = options_.join_after != 0 || options_.join_after_bytes != 0;
  if (!connection.multipath() || !waits) return join(number, now);
  if (options_.join_after != 0) ring(Alarm::join, number, after(now, options_.join_after));
}

void Simulation::join(std::uint32_t number, Time now) {
  Connection& connection = connections_[number];
  if (!connection.open || !connection.alone) return;
  connection.alone = false;
  const std::uint32_t end = connection.first + connection.count;
  if (options_.handshake) {
    for (std::uint32_t i = connection.first + 1; i < end; ++i) connect(i, now);
    return;
  }
  for (std::uint32_t i = connection.first + 1; i < end; ++i) subflows_[i].sender.established = true;
  hand_out(number, now);
  for (std::uint32_t i = connection.first; i < end; ++i) keep_time(i, now);
}

// The sender knows that all has arrived. What is left of the connection is what readings tell.
void Simulation::close(std::uint32_t number, Time now) {
  Connection& connection = connections_[number];
  connection.open = false;
  connection.to_reinject = {};
  connection.arrivals.release();
  for (std::uint32_t i = 0; i < connection.count; ++i) {
    Subflow& subflow = subflows_[connection.first + i];
    subflow.sender.retransmission.at = kNever;
    subflow.sender.board.close();
    subflow.sender.bound = {};
    subflow.receiver.arrivals.release();
    keep_time(connection.first + i, now);
  }
  if (connection.then != kNone) ring(Alarm::follow, connection.then, now + connections_[connection.then].start);
}

PacketId Simulation::descriptor() {
  const PacketId id = network_.pool().acquire();
  if (id == kNone) throw std::length_error("every packet descriptor is in use: queues or delays are too large");
  return id;
}

// Along this path, unless every packet takes one of its own.
void Simulation::lead(Packet& packet, const Path& path, NicId from, NicId to) {
  if (network_.router().per_packet()) [[unlikely]] {
    packet.take(network_.router().path(from, to, 0));
  } else {
    packet.take(path);
  }
}

void Simulation::ring(Alarm what, std::uint32_t owner, Time when) {
  const PacketId id = descriptor();
  Packet& packet = network_.pool()[id];
  packet.owner = owner;
  packet.size_bytes = static_cast<std::uint16_t>(what);
  network_.ring_at(id, when);
}

void Simulation::set(LazyAlarm& alarm, Alarm what, std::uint32_t owner, Time when) {
  alarm.at = when;
  if (alarm.pending != kNone && alarm.pending_at <= when) return;
  const PacketId id = descriptor();
  alarm.pending = id;
  alarm.pending_at = when;
  Packet& packet = network_.pool()[id];
  packet.owner = owner;
  packet.size_bytes = static_cast<std::uint16_t>(what);
  network_.ring_at(id, when);
}

// Whether it has come to its time. If it was moved since it was set, it is set again.
bool Simulation::is_due(LazyAlarm& alarm, Alarm what, PacketId id, std::uint32_t owner, Time now) {
  if (alarm.pending != id) return false;
  alarm.pending = kNone;
  if (alarm.at == kNever) return false;
  if (alarm.at > now) {
    set(alarm, what, owner, alarm.at);
    return false;
  }
  alarm.at = kNever;
  return true;
}

void Simulation::alarm(PacketId id, Time due) {
  const std::uint32_t owner = network_.pool()[id].owner;
  const Alarm what = alarm_of(network_.pool()[id]);
  network_.pool().release(id);
  switch (what) {
    case Alarm::start:
      return start_due(due);
    case Alarm::follow:
      return start(owner, due);
    case Alarm::join:
      return join(owner, due);
    case Alarm::datagram:
      return emit(owner, due);
    case Alarm::nic:
      return nic_ready(owner, due);
    case Alarm::retransmission:
      if (is_due(subflows_[owner].sender.retransmission, what, id, owner, due)) timed_out(owner, due);
      return;
    case Alarm::delayed_ack: {
      Receiver& receiver = subflows_[owner].receiver;
      if (is_due(receiver.delayed, what, id, owner, due) && receiver.unanswered != 0) {
        answer(owner, descriptor(), receiver.first_unanswered, receiver.last_marked, due);
      }
      return;
    }
  }
}

void Simulation::deliver(PacketId id, Time due) {
  const std::uint32_t subflow = network_.pool()[id].owner;
  if (segments_[id].carries == Carries::data) return received(subflow, id, due);
  if (segments_[id].carries == Carries::syn) return answer_syn(subflow, id, due);
  const Segment segment = segments_[id];
  network_.pool().release(id);
  switch (segment.carries) {
    case Carries::syn_acknowledgement:
      return connected(subflow, segment.sent, due);
    case Carries::datagram:
      ++datagrams_[subflow].received;
      return;
    default:
      return acknowledged(subflow, segment, due);
  }
}

void Simulation::expect(PacketId id) const {
  const Packet& packet = network_.pool()[id];
  if (packet.kind == Kind::alarm) {
    if (alarm_of(packet) != Alarm::nic) return;
    network_.ports()[packet.owner].prefetch();
    prefetch_to_write(&waiting_[packet.owner]);
    return;
  }
  prefetch_to_write(&segments_[id]);
  if (packet.owner >= subflows_.size()) return;  // of a constant-rate source
  if (packet.size_bytes <= options_.ack_bytes + options_.mptcp_ack_bytes) {
    subflows_[packet.owner].prefetch_sender();
  } else {
    subflows_[packet.owner].prefetch_receiver();
  }
}

// What `expect` has fetched is there by now: what it leads to.
void Simulation::expect_soon(PacketId id) const {
  const Packet& packet = network_.pool()[id];
  if (packet.kind == Kind::alarm) {
    if (alarm_of(packet) != Alarm::nic) return;
    const std::uint32_t first = waiting_[packet.owner].first;
    if (first != kNone) subflows_[first].prefetch_sender();
    return;
  }
  if (packet.owner >= subflows_.size()) return;
  const Subflow& subflow = subflows_[packet.owner];
  const Connection& connection = connections_[subflow.connection];
  prefetch_lines(&connection, &connection.arrivals);
  const Segment& segment = segments_[id];
  if (segment.carries != Carries::acknowledgement) {
    network_.ports()[subflow.back.ports[0]].prefetch();
    subflow.receiver.arrivals.prefetch(segment.seq);
    connection.arrivals.prefetch(segment.dsn);
    return;
  }
  network_.ports()[subflow.forward.ports[0]].prefetch();
  subflow.sender.board.prefetch();
  const PathState* first = &paths_[packet.owner - subflow.number];
  prefetch_lines(first, first + std::min(connection.count, 8U) - 1);
}

void Simulation::dropped(PacketId id, PortId /*port*/, Time /*when*/) {
  if (segments_[id].carries == Carries::datagram) ++datagrams_[network_.pool()[id].owner].lost;
  network_.pool().release(id);
}

}  // namespace fabric
