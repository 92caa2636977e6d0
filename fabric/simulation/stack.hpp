// What all simulated hosts share: their options, the network, their timers, and the tables of their connections.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/network.hpp"
#include "simulation/ccp/agents.hpp"
#include "simulation/congestion/cubic.hpp"
#include "simulation/datagrams.hpp"
#include "simulation/host_clock.hpp"
#include "simulation/host_queue.hpp"
#include "simulation/options.hpp"
#include "simulation/timers.hpp"
#include "simulation/state/connection.hpp"
#include "simulation/state/segment.hpp"
#include "simulation/state/subflow.hpp"

namespace fabric {

template <class T>
using Table = std::vector<T, HugePages<T>>;

// The fields of a packet that do not depend on its path.
struct PacketHeader {
  std::uint32_t owner = 0;
  std::uint16_t size_bytes = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t dscp = 0;
  std::uint32_t rank = Precedence::kFirst;  // read where queues are by rank
};

struct Stack {
  Stack(NetworkConfig config, const TransportOptions& transport, const std::optional<NoiseConfig>& noise);
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
    network.inject(id, now, *this);
  }

  [[nodiscard]] Acknowledgement acknowledgement(PacketId id) const {
    Acknowledgement ack{segments[id], {}};
    if (ack.block_count != 0) ack.blocks = blocks[id];
    return ack;
  }

  // The network has lost the packet.
  void dropped(PacketId id, PortId /*port*/, Time /*when*/) {
    if (segments[id].carries == Carries::datagram) ++datagrams[network.pool()[id].owner].lost;
    network.pool().release(id);
  }

  TransportOptions options;
  Network network;
  Timers timers;
  HostClock clock;
  VirtualArray<Segment> segments;   // of the packet with the same id
  VirtualArray<SackBlocks> blocks;  // of the acknowledgement with the same id, if its `block_count` is not 0
  Table<Connection> connections;
  Table<Subflow> subflows;
  Table<PathState> paths;          // of each subflow
  Table<SocketClock> clocks;       // of each subflow
  Table<CubicPath> cubics;         // of each subflow; empty unless a connection has CUBIC
  std::vector<DatagramSource> datagrams;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> idle;  // persistent connections by their hosts
  std::vector<WaitingSenders> waiting;  // for room in the queue of each port
  std::unique_ptr<Agents> agents;       // of subflows whose windows an agent sets
  std::vector<SubflowView> views;       // scratch memory of the data scheduler
};

}  // namespace fabric
