// A network in partitions, which several threads can carry out: every node belongs to one, and so do the ports that
// transmit from it. What happens at a node changes its own partition only. A packet for another partition arrives there
// after the look-ahead at the earliest, so partitions can go that far ahead of one another (conservative parallel
// simulation: Fujimoto, CACM 1990).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/forwarding.hpp"
#include "core/port.hpp"
#include "core/units.hpp"

namespace fabric {

// What one partition of a network has sent to the others: packets under way to their nodes, and descriptors that it
// gives back to them.
struct Mail {
  Time due = 0;
  PacketId id = kNone;
};

class Outbox {
 public:
  explicit Outbox(std::size_t partitions) : mail_(partitions), spare_(partitions) {}

  void send(std::size_t to, Mail mail) {
    earliest_ = std::min(earliest_, mail.due);
    mail_[to].push_back(mail);
  }
  void give_back(std::size_t to, PacketId id) { spare_[to].push_back(id); }

  // For the receiver, which empties them.
  [[nodiscard]] std::vector<Mail>& mail(std::size_t to) { return mail_[to]; }
  [[nodiscard]] std::vector<PacketId>& spare(std::size_t to) { return spare_[to]; }
  [[nodiscard]] std::size_t spares() const {
    std::size_t sum = 0;
    for (const auto& each : spare_) sum += each.size();
    return sum;
  }

  // When the first packet is due that was sent since `begin`, kNever if none was.
  [[nodiscard]] Time earliest() const { return earliest_; }
  void begin() { earliest_ = kNever; }

 private:
  std::vector<std::vector<Mail>> mail_;  // to each partition, in the order in which it was sent
  std::vector<std::vector<PacketId>> spare_;
  Time earliest_ = kNever;
};

class Partitions {
 public:
  static constexpr std::size_t kMost = 256;

  Partitions() = default;  // one

  // `of_nodes` is the partition of each node; empty: there is one. Throws std::invalid_argument for a plan in which a
  // port would transmit from two partitions.
  Partitions(std::vector<std::uint16_t> of_nodes, std::span<const NodeId> far_nodes, std::span<const Nic> nics,
             const ForwardingTable& table)
      : of_nodes_(std::move(of_nodes)), far_nodes_(far_nodes.begin(), far_nodes.end()) {
    if (of_nodes_.empty()) return;
    if (of_nodes_.size() != table.nodes()) throw std::invalid_argument("network plan: one partition for each node");
    count_ = std::size_t{*std::ranges::max_element(of_nodes_)} + 1;
    if (count_ > kMost) throw std::invalid_argument("network plan: a network has 256 partitions at most");
    of_ports_.assign(far_nodes_.size(), kUnused);
    for (const Nic& nic : nics) {
      of_nics_.push_back(nic.downlink == kNone ? of_nodes_[nic.attach_node] : of_nodes_[far_nodes_[nic.downlink]]);
      if (nic.uplink == kNone) continue;
      place(nic.uplink, of_nics_.back());
      place(nic.downlink, of_nodes_[nic.attach_node]);
    }
    for (NodeId node = 0; node < table.nodes(); ++node) place_forwarding(node, table);
    place_lists(nics, table);
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool several() const { return count_ > 1; }
  [[nodiscard]] std::size_t of_nic(NicId nic) const { return several() ? of_nics_[nic] : 0; }
  // Whether the port, at its far end, leads into this partition.
  [[nodiscard]] bool leads_into(PortId port, std::size_t partition) const { return of_nodes_[far_nodes_[port]] == partition; }
  [[nodiscard]] std::vector<PortId> ports_of(std::size_t partition) const {
    std::vector<PortId> out;
    for (PortId port = 0; port < of_ports_.size(); ++port) {
      if (of_ports_[port] == partition) out.push_back(port);
    }
    return out;
  }
  // The partition that transmits at this port.
  [[nodiscard]] std::size_t of_port(PortId port) const { return several() ? of_ports_[port] : 0; }
  // The partition at the far end of this port, if it is another than that which transmits; Port::kHere if not.
  [[nodiscard]] std::uint16_t beyond(PortId port) const {
    if (!several() || of_ports_[port] == kUnused) return Port::kHere;
    const std::uint16_t far = of_nodes_[far_nodes_[port]];
    return far == of_ports_[port] ? Port::kHere : far;
  }

  // How long a packet of at least this many bytes takes to another partition; kNever if none can get there.
  [[nodiscard]] Time look_ahead(std::span<const Port> ports, std::uint32_t fewest_bytes) const {
    Time least = kNever;
    for (PortId i = 0; i < ports.size(); ++i) {
      if (beyond(i) == Port::kHere) continue;
      // A discipline chooses a packet when its transmission begins, and it is known to leave only when that has ended.
      const Time transmission = ports[i].is_scheduled() ? 0 : ports[i].transmission_time(fewest_bytes);
      least = std::min(least, ports[i].delay() + transmission);
    }
    return least;
  }

  // Whether a packet can follow these ports: each transmits from the partition that the one before leads into.
  [[nodiscard]] bool joined(std::size_t from, std::span<const PortId> path) const {
    if (!several()) return true;
    for (const PortId port : path) {
      if (of_ports_[port] != from) return false;
      from = of_nodes_[far_nodes_[port]];
    }
    return true;
  }

 private:
  static constexpr std::uint16_t kUnused = 0xFFFF;  // no route passes it

  void place_forwarding(NodeId node, const ForwardingTable& table) {
    if (!table.forwards(node)) return;
    for (std::uint32_t attach = 0; attach < table.attachments(); ++attach) {
      for (const GroupMember& member : table.group(node, attach)) place(member.port, of_nodes_[node]);
    }
  }

  void place_lists(std::span<const Nic> nics, const ForwardingTable& table) {
    if (table.lists().empty()) return;
    std::vector<NodeId> nodes(table.attachments(), kNone);
    for (const Nic& nic : nics) nodes[nic.attach] = nic.attach_node;
    for (std::uint32_t from = 0; from < nodes.size(); ++from) {
      for (std::uint32_t to = 0; to < nodes.size() && nodes[from] != kNone; ++to) {
        for (std::size_t i = 0; i < table.lists().count(from, to); ++i) {
          std::uint16_t partition = of_nodes_[nodes[from]];
          for (const PortId port : table.lists().path(from, to, i)) {
            place(port, partition);
            partition = of_nodes_[far_nodes_[port]];
          }
        }
      }
    }
  }

  void place(PortId port, std::uint16_t partition) {
    if (of_ports_[port] != kUnused && of_ports_[port] != partition) {
      throw std::invalid_argument("network plan: two partitions transmit at port " + std::to_string(port));
    }
    of_ports_[port] = partition;
  }

  std::vector<std::uint16_t> of_nodes_;
  std::vector<NodeId> far_nodes_;
  std::vector<std::uint16_t> of_ports_;  // at their transmitting ends
  std::vector<std::uint16_t> of_nics_;   // of the hosts that have them
  std::size_t count_ = 1;
};

}  // namespace fabric
