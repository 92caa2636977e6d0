// The state of all simulated hosts, in tables. In a partitioned simulation the partitions share them: what a sender
// changes belongs to the partition of its host, and what a receiver changes to that of the other host.
#pragma once

#include <cstddef>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/virtual_array.hpp"
#include "simulation/congestion/cubic.hpp"
#include "simulation/datagrams.hpp"
#include "simulation/host_queue.hpp"
#include "simulation/options.hpp"
#include "simulation/schedulers/scheduler.hpp"
#include "simulation/state/connection.hpp"
#include "simulation/state/segment.hpp"
#include "simulation/state/subflow.hpp"

namespace fabric {

template <class T>
using Table = std::vector<T, HugePages<T>>;

struct Tables {
  Tables(const TransportOptions& transport, std::size_t packets, std::size_t ports)
      : options(transport), segments(packets), blocks(packets), waiting(ports) {
    segments.prefer_huge_pages();
  }

  TransportOptions options;
  VirtualArray<Segment> segments;   // of the packet with the same id
  VirtualArray<SackBlocks> blocks;  // of the acknowledgement with the same id, if its `block_count` is not 0
  Table<Connection> connections;
  Table<Subflow> subflows;
  Table<PathState> paths;     // of each subflow
  Table<SubflowView> views;   // of each subflow; empty unless a connection has several
  Table<SocketClock> clocks;  // of each subflow
  Table<CubicPath> cubics;    // of each subflow; empty unless a connection has CUBIC
  std::vector<DatagramSource> datagrams;
  std::vector<WaitingSenders> waiting;  // for room in the queue of each port
};

}  // namespace fabric
