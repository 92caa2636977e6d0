// Where a packet goes next: a table of next-hop groups for every switch, built from the topology's shortest paths
// (controllers/groups.py), and the choice of one member.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "core/packet.hpp"
#include "core/path_lists.hpp"
#include "core/units.hpp"

namespace fabric {

// hashed: one hash of the flow picks the whole path among all shortest ones (RipL), or those of a list.
// ecmp:   every switch hashes the flow with its own seed (as real switches do).
// wcmp:   the same, in proportion to the weights of its next hops, which stand in place of their numbers of paths.
// scatter: every packet takes one of all shortest paths, or those of a list, with equal probability.
// valiant: one hash picks a switch that has hosts, and the path leads through it (Valiant and Brebner, 1981).
// presto: every 64 kB of a flow take the next one of all shortest paths (balancing/presto.hpp).
// letflow, drill, conga: every switch chooses the next hop by its own state (balancing/registry.hpp).
enum class Policy : std::uint8_t { hashed, ecmp, wcmp, scatter, valiant, letflow, drill, conga, presto };

struct GroupMember {
  PortId port;
  std::uint32_t paths;  // shortest paths from the far end of `port` to the destination's switch
};

// A host's attachment: its address, the switch it is connected to, and the two ports between them. A host that forwards
// is its own attachment and has no such ports (kNone).
struct Nic {
  std::uint32_t ip = 0;
  NodeId attach_node = 0;
  std::uint32_t attach = 0;  // column of the forwarding table
  PortId uplink = kNone;
  PortId downlink = kNone;
};

class ForwardingTable {
 public:
  // `fib` has rows of `attachments` entries: a group number, or -1. `rows` names the row of each node (kNone: it has
  // none, as most hosts); if it is empty, every node has a row. Group g is members[offsets[g] .. offsets[g + 1]).
  ForwardingTable(std::size_t attachments, std::vector<std::int32_t> fib,
                  std::vector<std::uint32_t> offsets, std::vector<GroupMember> members,
                  std::vector<std::uint32_t> rows = {}, PathLists lists = {})
      : attachments_(attachments), fib_(std::move(fib)), rows_(std::move(rows)), offsets_(std::move(offsets)),
        members_(std::move(members)), lists_(std::move(lists)) {
    check_groups();
    rows_.empty() ? drop_empty_rows() : check_rows();
  }

  [[nodiscard]] std::size_t attachments() const { return attachments_; }
  [[nodiscard]] std::size_t nodes() const { return rows_.size(); }
  [[nodiscard]] std::span<const GroupMember> members() const { return members_; }
  // Paths that replace the shortest ones, unless empty.
  [[nodiscard]] const PathLists& lists() const { return lists_; }
  // Whether this node has a next hop to anywhere.
  [[nodiscard]] bool forwards(NodeId node) const { return rows_[node] != kNone; }

  // Empty if the destination cannot be reached from here.
  [[nodiscard]] std::span<const GroupMember> group(NodeId node, std::uint32_t attach) const {
    if (rows_[node] == kNone) return {};
    const std::int32_t g = fib_[rows_[node] * attachments_ + attach];
    if (g < 0) return {};
    const auto first = offsets_[static_cast<std::size_t>(g)];
    const auto last = offsets_[static_cast<std::size_t>(g) + 1];
    return {members_.data() + first, last - first};
  }

  // The ports that are next hops from here to anywhere, ascending.
  [[nodiscard]] std::vector<PortId> ports_of(NodeId node) const {
    std::vector<PortId> out;
    for (std::uint32_t attach = 0; attach < attachments_; ++attach) {
      for (const auto& member : group(node, attach)) out.push_back(member.port);
    }
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  // Number of shortest paths from `node` to the destination's switch.
  [[nodiscard]] std::uint32_t paths(NodeId node, std::uint32_t attach) const {
    std::uint32_t total = 0;
    for (const auto& member : group(node, attach)) total += member.paths;
    return total;
  }

 private:
  // Checks the table by itself; the ports and nodes that it names are checked with the plan (plan_check.hpp).
  void check_groups() const {
    constexpr std::size_t kMostAttachments = std::size_t{1} << 24;
    if (attachments_ == 0 || attachments_ > kMostAttachments || fib_.empty() || fib_.size() % attachments_ != 0) {
      throw std::invalid_argument("forwarding table: not a whole number of rows of 1 to 2^24 entries");
    }
    if (offsets_.empty() || offsets_.front() != 0 || offsets_.back() != members_.size()) {
      throw std::invalid_argument("forwarding table: group offsets do not cover the members");
    }
    for (std::size_t group = 0; group + 1 < offsets_.size(); ++group) {
      if (offsets_[group] >= offsets_[group + 1] || offsets_[group + 1] > members_.size()) {
        throw std::invalid_argument("forwarding table: group " + std::to_string(group) + " has no members");
      }
      check_paths(group);
    }
    const auto groups = static_cast<std::int64_t>(offsets_.size()) - 1;
    for (const std::int32_t group : fib_) {
      if (group < -1 || group >= groups) {
        throw std::invalid_argument("forwarding table: there is no group " + std::to_string(group));
      }
    }
  }

  void check_rows() const {
    const std::size_t rows = fib_.size() / attachments_;
    for (const std::uint32_t row : rows_) {
      if (row != kNone && row >= rows) throw std::invalid_argument("forwarding table: a node's row does not exist");
    }
  }

  void check_paths(std::size_t group) const {
    std::uint64_t paths = 0;
    for (std::size_t i = offsets_[group]; i < offsets_[group + 1]; ++i) {
      if (members_[i].paths == 0) throw std::invalid_argument("forwarding table: a next hop without a path");
      paths += members_[i].paths;
    }
    if (paths > kNone) throw std::invalid_argument("forwarding table: more than 2^32 paths from one switch");
  }

  void drop_empty_rows() {
    const std::size_t nodes = fib_.size() / attachments_;
    std::uint32_t kept = 0;
    for (std::size_t node = 0; node < nodes; ++node) {
      const auto row = fib_.begin() + static_cast<std::ptrdiff_t>(node * attachments_);
      const auto end = row + static_cast<std::ptrdiff_t>(attachments_);
      const bool empty = std::all_of(row, end, [](std::int32_t group) { return group < 0; });
      rows_.push_back(empty ? kNone : kept);
      if (!empty) std::copy(row, end, fib_.begin() + static_cast<std::ptrdiff_t>(kept++ * attachments_));
    }
    fib_.resize(kept * attachments_);
    fib_.shrink_to_fit();
  }

  std::size_t attachments_;
  std::vector<std::int32_t> fib_;    // of the nodes that forward
  std::vector<std::uint32_t> rows_;  // in `fib_`, of each node
  std::vector<std::uint32_t> offsets_;
  std::vector<GroupMember> members_;
  PathLists lists_;
};

// Unranks the path of this rank in the sorted list of all shortest paths, one hop at a time: a member with n paths
// beyond it stands for n consecutive ranks.
inline const GroupMember& by_rank(std::span<const GroupMember> group, std::uint32_t& rank) {
  for (const auto& member : group) {
    if (rank < member.paths) return member;
    rank -= member.paths;
  }
  return group.back();
}

inline const GroupMember& by_hash(std::span<const GroupMember> group, std::uint32_t flow_hash, std::uint32_t seed) {
  if (group.size() == 1) return group.front();
  return group[mix(flow_hash, seed) % group.size()];
}

inline const GroupMember& by_weight(std::span<const GroupMember> group, std::uint32_t flow_hash, std::uint32_t seed) {
  if (group.size() == 1) return group.front();
  std::uint32_t total = 0;
  for (const auto& member : group) total += member.paths;
  std::uint32_t rank = mix(flow_hash, seed) % total;
  return by_rank(group, rank);
}

// Finds a NIC by address: open addressing, built once.
class NicTable {
 public:
  explicit NicTable(std::span<const Nic> nics) {
    std::size_t size = 16;
    while (size < nics.size() * 4) size *= 2;
    slots_.assign(size, Slot{});
    for (NicId id = 0; id < nics.size(); ++id) {
      std::size_t i = home(nics[id].ip);
      while (slots_[i].id != kNone) {
        if (slots_[i].ip == nics[id].ip) throw std::invalid_argument("two NICs share one address");
        i = (i + 1) & (slots_.size() - 1);
      }
      slots_[i] = Slot{nics[id].ip, id};
    }
  }

  // kNone when no host has this address.
  [[nodiscard]] NicId find(std::uint32_t ip) const {
    for (std::size_t i = home(ip); slots_[i].id != kNone; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].ip == ip) return slots_[i].id;
    }
    return kNone;
  }

 private:
  struct Slot {
    std::uint32_t ip = 0;
    NicId id = kNone;
  };

  [[nodiscard]] std::size_t home(std::uint32_t ip) const { return mix(ip, 0) & (slots_.size() - 1); }

  std::vector<Slot> slots_;
};

}  // namespace fabric
