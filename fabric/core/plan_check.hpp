// The one check of a network plan, before anything is built from it. After it the core trusts every index: a packet
// follows ports, nodes and groups without further checks. Network's constructor calls it, so no network skips it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/disciplines/registry.hpp"
#include "core/forwarding.hpp"
#include "core/port.hpp"
#include "core/units.hpp"

namespace fabric {

inline constexpr std::int64_t kMinRateBps = 1'000;
inline constexpr std::int64_t kMaxRateBps = 1'000'000'000'000'000;
inline constexpr Time kMaxDelay = 1'000 * kSecond;
inline constexpr std::size_t kMaxPorts = std::size_t{1} << 24;
inline constexpr std::size_t kMaxPackets = std::size_t{1} << 28;

// Throws std::invalid_argument for a rate out of range; the range keeps times from overflowing.
inline std::int64_t checked_rate(std::int64_t rate_bps) {
  if (rate_bps >= kMinRateBps && rate_bps <= kMaxRateBps) return rate_bps;
  throw std::invalid_argument("a port's rate must be 1 kb/s to 1000 Tb/s, not " + std::to_string(rate_bps) + " bit/s");
}

class PlanCheck {
 public:
  PlanCheck(std::span<const PortConfig> ports, std::span<const NodeId> far_nodes, std::span<const Nic> nics,
            const ForwardingTable& table, std::size_t max_packets)
      : ports_(ports), far_nodes_(far_nodes), nics_(nics), table_(table), max_packets_(max_packets) {}

  // Throws std::invalid_argument, which names the first thing that does not fit.
  void run() const {
    if (ports_.empty() || ports_.size() > kMaxPorts) refuse("a network has 1 to 2^24 ports", ports_.size());
    if (ports_.size() != far_nodes_.size()) refuse("ports and far nodes differ in number", far_nodes_.size());
    if (nics_.empty() || nics_.size() > kMaxPorts) refuse("a network has 1 to 2^24 NICs", nics_.size());
    if (max_packets_ == 0 || max_packets_ > kMaxPackets) refuse("a network holds 1 to 2^28 packets", max_packets_);
    for (std::size_t i = 0; i < ports_.size(); ++i) check_port(i);
    check_nics();
    check_table();
    check_lists();
  }

 private:
  static constexpr std::uint64_t kLongestFrame = 1 << 16;

  [[noreturn]] static void refuse(const std::string& what, std::size_t number) {
    throw std::invalid_argument("network plan: " + what + " (" + std::to_string(number) + ")");
  }

  void check_port(std::size_t i) const {
    const PortConfig& port = ports_[i];
    (void)checked_rate(port.rate_bps);
    if (port.delay < 0 || port.delay > kMaxDelay) refuse("a port's delay is not 0 to 1000 s", i);
    if (port.discipline >= queue_kinds().size()) refuse("a port's queue discipline does not exist", i);
    if (port.traced && port.discipline == 0) refuse("a traced port needs a discipline that sends one by one", i);
    if (far_nodes_[i] >= table_.nodes()) refuse("a port leads to a node that does not exist", i);
    // A full queue must have left before the end of time.
    const std::uint32_t limit = port.admission.tail.limit_pkts;
    const double packets = static_cast<double>(limit != 0 && limit < max_packets_ ? limit : max_packets_);
    const double longest = packets * static_cast<double>(kLongestFrame * 8) / static_cast<double>(port.rate_bps);
    if (longest > static_cast<double>(kNever / kSecond) / 4) refuse("a port's queue takes months to empty", i);
  }

  void check_nics() const {
    std::vector<NodeId> nodes(table_.attachments(), kNone);
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      const Nic& nic = nics_[i];
      if (nic.attach >= table_.attachments()) refuse("a NIC's column of the forwarding table does not exist", i);
      if (nic.attach_node >= table_.nodes()) refuse("a NIC is attached to a node that does not exist", i);
      NodeId& node = nodes[nic.attach];
      if (node != kNone && node != nic.attach_node) refuse("two nodes share a column of the forwarding table", i);
      node = nic.attach_node;
      if ((nic.uplink == kNone) != (nic.downlink == kNone)) refuse("a NIC has only one of its two ports", i);
      if (nic.uplink == kNone) continue;
      if (nic.uplink >= ports_.size() || nic.downlink >= ports_.size()) refuse("a NIC names a port that does not exist", i);
      if (far_nodes_[nic.uplink] != nic.attach_node) refuse("a NIC's uplink does not lead to its switch", i);
    }
  }

  // Each next hop exists, and is the destination's switch or has a next hop itself: no walk ends in between.
  void check_table() const {
    for (const GroupMember& member : table_.members()) {
      if (member.port >= ports_.size()) refuse("a next hop names a port that does not exist", member.port);
    }
    std::vector<NodeId> targets(table_.attachments(), kNone);
    for (const Nic& nic : nics_) targets[nic.attach] = nic.attach_node;
    for (NodeId node = 0; node < table_.nodes(); ++node) {
      if (!table_.forwards(node)) continue;
      for (std::uint32_t attach = 0; attach < targets.size(); ++attach) {
        if (targets[attach] != kNone) check_hops(node, attach, targets[attach]);
      }
    }
  }

  void check_hops(NodeId node, std::uint32_t attach, NodeId target) const {
    for (const GroupMember& member : table_.group(node, attach)) {
      const NodeId next = far_nodes_[member.port];
      if (next != target && table_.group(next, attach).empty()) refuse("a route ends before its destination, at node", next);
    }
  }

  // Each path of a list leads from one attachment's node to the other's, and a packet can hold it.
  void check_lists() const {
    const PathLists& lists = table_.lists();
    if (lists.empty()) return;
    std::vector<const Nic*> at(table_.attachments(), nullptr);
    for (const Nic& nic : nics_) at[nic.attach] = &nic;
    for (std::uint32_t from = 0; from < at.size(); ++from) {
      for (std::uint32_t to = 0; to < at.size(); ++to) {
        for (std::size_t i = 0; i < lists.count(from, to); ++i) check_path(lists.path(from, to, i), at[from], at[to]);
      }
    }
  }

  void check_path(std::span<const PortId> path, const Nic* from, const Nic* to) const {
    if (from == nullptr || to == nullptr) return;  // nobody takes it
    const std::size_t own = (from->uplink != kNone ? 1U : 0U) + (to->downlink != kNone ? 1U : 0U);
    if (path.empty() || path.size() + own > Path::kMostHops) refuse("a listed path passes no link or more than 10", path.size());
    for (const PortId port : path) {
      if (port >= ports_.size()) refuse("a listed path names a port that does not exist", port);
    }
    if (far_nodes_[path.back()] != to->attach_node) refuse("a listed path ends before its destination, at node", far_nodes_[path.back()]);
  }

  std::span<const PortConfig> ports_;
  std::span<const NodeId> far_nodes_;
  std::span<const Nic> nics_;
  const ForwardingTable& table_;
  std::size_t max_packets_;
};

}  // namespace fabric
