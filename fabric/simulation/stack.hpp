// What the simulated hosts of one partition have: their options, their network, their timers, and the tables of all
// connections.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/network.hpp"
#include "core/random.hpp"
#include "simulation/ccp/agents.hpp"
#include "simulation/host_clock.hpp"
#include "simulation/options.hpp"
#include "simulation/state/tables.hpp"
#include "simulation/timers.hpp"

namespace fabric {

// The fields of a packet that do not depend on its path.
struct PacketHeader {
  std::uint32_t owner = 0;
  std::uint16_t size_bytes = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t dscp = 0;
  std::uint32_t rank = Precedence::kFirst;  // read where queues are by rank
};

struct Stack {
  // `tables` must be complete, and outlive the stack.
  Stack(Tables& tables, Network part, std::size_t partition, const std::optional<NoiseConfig>& noise);
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
    if (network.pool().ranks_packets()) [[unlikely]] {
      const bool datagram = segments[id].carries == Carries::datagram;
      network.pool().precedence(id) = {header.rank, datagram ? ~header.owner : header.owner};
    }
    if (network.router().per_packet()) [[unlikely]] {
      packet.take(network.router().path(from, to, 0));
    } else {
      packet.take(path);
    }
    network.inject(id, processed(packet, now), *this);
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

  [[nodiscard]] Acknowledgement acknowledgement(PacketId id) const {
    Acknowledgement ack{segments[id], {}};
    if (ack.block_count != 0) ack.blocks = blocks[id];
    return ack;
  }

  // The network has lost the packet.
  void dropped(PacketId id, PortId /*port*/, Time /*when*/) {
    if (segments[id].carries == Carries::datagram) ++lost_datagrams[network.pool()[id].owner];
    network.pool().release(id);
  }

  TransportOptions options;
  Network network;
  Timers timers;
  HostClock clock;
  // Of all partitions (state/tables.hpp):
  std::span<Segment> segments;
  std::span<SackBlocks> blocks;
  std::span<Connection> connections;
  std::span<Subflow> subflows;
  std::span<PathState> paths;
  std::span<SubflowView> views;
  std::span<SocketClock> clocks;
  std::span<CubicPath> cubics;
  std::span<DatagramSource> datagrams;
  std::span<WaitingSenders> waiting;
  // Of this partition:
  std::vector<std::uint32_t> lost_datagrams;  // of each source, in this partition of the network
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> idle;  // persistent connections by their hosts
  std::unique_ptr<Agents> agents;       // of subflows whose windows an agent sets

 private:
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

  Random random_;
  bool prompt_ = false;
};

}  // namespace fabric
