// What the simulated hosts of one partition have below their transports: options, their network, what packets carry, a
// clock and timers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "core/network.hpp"
#include "core/random.hpp"
#include "simulation/flow_order.hpp"
#include "simulation/machine_noise.hpp"
#include "simulation/options.hpp"
#include "simulation/segment.hpp"

namespace fabric {

// The alarms of hosts, each with the number of its owner: a connection, a subflow, a port or a source of datagrams.
enum class Alarm : std::uint16_t { start, follow, join, nic, retransmission, delayed_ack, datagram, agent, pacing };

// A timer that is set, moved and cancelled more often than it expires. It has at most one valid descriptor in the
// calendar, `pending`; a descriptor that comes due and is not the pending one is stale.
struct LazyAlarm {
  Time at = kNever;
  Time pending_at = kNever;
  PacketId pending = kNone;
};

class Timers {
 public:
  explicit Timers(Network& network) : network_(network) {}

  [[nodiscard]] static Alarm alarm_of(const Packet& packet) { return static_cast<Alarm>(packet.alarm); }

  // Schedules an alarm that cannot be cancelled. Returns its descriptor.
  PacketId schedule(Alarm what, std::uint32_t owner, Time when) {
    const PacketId id = network_.pool().acquire_or_throw();
    network_.pool()[id].owner = owner;
    network_.ring_at(id, static_cast<std::uint16_t>(what), when);
    return id;
  }

  void set(LazyAlarm& alarm, Alarm what, std::uint32_t owner, Time when) {
    alarm.at = when;
    if (alarm.pending != kNone && alarm.pending_at <= when) return;
    alarm.pending = schedule(what, owner, when);
    alarm.pending_at = when;
  }

  // Whether the timer has expired. One that was moved to a later time is scheduled again.
  [[nodiscard]] bool expires(LazyAlarm& alarm, Alarm what, PacketId id, std::uint32_t owner, Time now) {
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

 private:
  Network& network_;
};

// What packets carry, found by their ids. Partitions share it.
struct PacketContents {
  explicit PacketContents(std::size_t packets) : segments(packets), blocks(packets) { segments.prefer_huge_pages(); }

  VirtualArray<Segment> segments;
  VirtualArray<SackBlocks> blocks;  // of acknowledgements whose `block_count` is not 0
};

// The fields of a packet that do not depend on its path.
struct PacketHeader {
  std::uint32_t owner = 0;
  std::uint16_t size_bytes = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t dscp = 0;
  std::uint32_t rank = Precedence::kFirst;  // read where queues are by rank
  bool measured = false;                    // switches write their readings into it
};

struct Stack {
  Stack(const TransportOptions& transport, PacketContents& contents, Network part, std::size_t partition,
        const std::optional<NoiseConfig>& noise, std::size_t datagram_sources, std::span<const FlowBegin> flow_begins)
      : options(transport), network(std::move(part)), timers(network), clock(noise),
        segments(&contents.segments[0], contents.segments.capacity()),
        blocks(&contents.blocks[0], contents.blocks.capacity()), lost_datagrams(datagram_sources), begins_(flow_begins),
        random_(options.processing_seed, static_cast<std::uint32_t>(partition)) {
    for (const Nic& nic : network.router().nics()) {
      if (nic.uplink != kNone && network.ports()[nic.uplink].is_scheduled()) awaited_.resize(network.ports().size());
    }
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
  Stack(Stack&&) = delete;
  Stack& operator=(Stack&&) = delete;
  ~Stack() = default;

  // Sends a packet along the path, or, where routing chooses a path for every packet, along another.
  void send(PacketId id, const PacketHeader& header, const Path& path, NicId from, NicId to, Time now) {
    Packet& packet = network.pool()[id];
    packet.kind = Kind::packet;
    packet.owner = header.owner;
    packet.size_bytes = header.size_bytes;
    packet.ecn = header.ecn;
    packet.dscp = header.dscp & kDscpBits;
    if (network.pool().annotates()) [[unlikely]] annotate(id, header);
    if (network.routes_each_packet()) [[unlikely]] {
      const std::uint32_t flow = segments[id].carries == Carries::datagram ? ~header.owner : header.owner;
      network.route(id, from, to, switch_seed(flow, from));  // the other direction is another flow
      if (packet.hops == 0) packet.take(path);  // routing has lost the last path
    } else {
      packet.take(path);
    }
    network.inject(id, processed(packet, now), *this);
  }

  // All data of the flow is acknowledged: the one that waits for it follows.
  void ended(std::uint32_t flow, Time now) {
    const std::uint32_t then = begins_[flow].then;
    if (then != kNone) timers.schedule(Alarm::follow, then, now + begins_[then].start);
  }

  // The transport may send when the packet in front of this queue of a host has left. There must be one.
  void await_departure(PortId port) {
    // Whether a port is a FIFO is beyond the cache lines that a hop needs.
    if (!awaited_.empty() && network.port(port).is_scheduled()) [[unlikely]] {
      awaited_[port] = true;
    } else {
      timers.schedule(Alarm::nic, port, network.port(port).first_departure());
    }
  }
  // A packet has left a port that is no FIFO.
  void left(PortId port, Time when) {
    if (awaited_.empty() || !awaited_[port]) return;
    awaited_[port] = false;
    timers.schedule(Alarm::nic, port, when);
  }

  // While one exists, hosts take no time for what they send.
  class Prompt {
   public:
    explicit Prompt(Stack& stack) : stack_(stack) { stack_.prompt_ = true; }
    Prompt(const Prompt&) = delete;
    Prompt& operator=(const Prompt&) = delete;
    Prompt(Prompt&&) = delete;
    Prompt& operator=(Prompt&&) = delete;
    ~Prompt() { stack_.prompt_ = false; }

   private:
    Stack& stack_;
  };

  // The network has lost the packet.
  void dropped(PacketId id, PortId /*port*/, Time /*when*/) {
    if (segments[id].carries == Carries::datagram) ++lost_datagrams[network.pool()[id].owner];
    network.pool().release(id);
  }

  TransportOptions options;
  Network network;
  Timers timers;
  HostClock clock;
  std::span<Segment> segments;   // of the packet with the same id
  std::span<SackBlocks> blocks;  // the same
  std::vector<std::uint32_t> lost_datagrams;  // of each source, in this partition of the network

 private:
  void annotate(PacketId id, const PacketHeader& header) {
    PacketPool& pool = network.pool();
    if (pool.ranks_packets()) {
      const bool datagram = segments[id].carries == Carries::datagram;
      pool.precedence(id) = {header.rank, datagram ? ~header.owner : header.owner};
    }
    if (!pool.measures_packets()) return;
    // An answer in the same packet brings the readings back.
    pool.telemetry(id).wanted = header.measured;
    if (header.measured) pool.telemetry(id).hops = 0;
  }

  // When the host has processed the packet. Its queue takes packets in the order in which they are sent, whatever these
  // times, and is brought forward to each: what it holds then does not depend on when it was read last.
  [[nodiscard]] Time processed(const Packet& packet, Time now) {
    if (options.processing_frames == 0 || prompt_ || packet.hops == 0) return now;
    Port& port = network.port(packet.port());
    const Time frame = port.transmission_time(options.payload_bytes + options.header_bytes);
    const double most_ns = options.processing_frames * static_cast<double>(frame) / static_cast<double>(kNanosecond);
    const Time ready = now + kNanosecond * static_cast<Time>(random_.below(static_cast<std::uint32_t>(most_ns)));
    port.advance(ready);
    return ready;
  }

  std::span<const FlowBegin> begins_;
  std::vector<bool> awaited_;  // of each port, if hosts' queues are no FIFOs
  Random random_;
  bool prompt_ = false;
};

}  // namespace fabric
