// Paths from host to host: which ports a packet passes under a policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/balancing/presto.hpp"
#include "core/forwarding.hpp"
#include "core/hash.hpp"
#include "core/packet.hpp"
#include "core/random.hpp"

namespace fabric {

// Paths chosen for single flows, which take precedence over routing: an exact match of the 5-tuple.
class ChosenPaths {
 public:
  void set(const FiveTuple& flow, const Path& path) { paths_.insert_or_assign(flow, path); }
  void clear(const FiveTuple& flow) { paths_.erase(flow); }

  [[nodiscard]] bool empty() const { return paths_.empty(); }
  // nullptr for a flow without one.
  [[nodiscard]] const Path* find(const FiveTuple& flow) const {
    const auto found = paths_.find(flow);
    return found == paths_.end() ? nullptr : &found->second;
  }

 private:
  struct Hash {
    std::size_t operator()(const FiveTuple& flow) const { return flow_hash(flow); }
  };

  std::unordered_map<FiveTuple, Path, Hash> paths_;
};

class Router {
 public:
  Router(std::vector<Nic> nics, std::vector<NodeId> far_nodes, ForwardingTable table, Policy policy, std::uint32_t seed,
         std::uint64_t cell_bytes = 0)
      : nics_(std::move(nics)), by_address_(nics_), far_nodes_(std::move(far_nodes)), table_(std::move(table)),
        policy_(policy), seed_(seed), random_(seed, kNone), cells_(cell_bytes) {
    for (const Nic& nic : nics_) {
      if (nic.attach >= attach_nodes_.size()) attach_nodes_.resize(nic.attach + std::size_t{1}, kNone);
      attach_nodes_[nic.attach] = nic.attach_node;
    }
  }

  // The path of a packet whose flow hashes to `hash`; empty if there is none (the other plane of a dual-homed network).
  // Under `scatter` every call chooses again.
  [[nodiscard]] Path path(NicId source, NicId destination, std::uint32_t hash) {
    const Nic& from = nics_[source];
    const Nic& to = nics_[destination];
    switch (policy_) {
      case Policy::ecmp:
        return joined(from, to, [&](Path& path) {
          return walk_hops(path, from, to, [&](auto group, std::uint32_t seed) { return by_hash(group, hash, seed); });
        });
      case Policy::wcmp:
        return joined(from, to, [&](Path& path) {
          return walk_hops(path, from, to, [&](auto group, std::uint32_t seed) { return by_weight(group, hash, seed); });
        });
      case Policy::valiant:
        return joined(from, to, [&](Path& path) { return walk_valiant(path, from, to, hash); });
      case Policy::scatter:
        return joined(from, to, [&](Path& path) { return walk(path, from.attach, to.attach, any()); });
      case Policy::hashed:
      case Policy::letflow:
      case Policy::drill:
      case Policy::conga:
      case Policy::presto:
        break;
    }
    return joined(from, to, [&](Path& path) { return walk(path, from.attach, to.attach, mix(hash, seed_)); });
  }

  // The path of the flow's next packet, of this size.
  [[nodiscard]] Path path_of_packet(NicId source, NicId destination, std::uint32_t hash, std::uint32_t bytes) {
    if (policy_ != Policy::presto) return path(source, destination, hash);
    const std::uint32_t count = paths(source, destination);
    return path_of_rank(source, destination, count == 0 ? 0 : mix(hash, seed_) % count + cells_.next(hash, bytes));
  }

  // The path chosen for this flow; nullptr for one without.
  [[nodiscard]] const Path* chosen(const FiveTuple& flow) const {
    return chosen_.empty() ? nullptr : chosen_.find(flow);
  }

  // Sends packets of this flow along this path from now on. It must lead from the source's NIC to the destination's.
  void choose(const FiveTuple& flow, const Path& path) {
    const NicId source = find_nic(flow.src);
    const NicId destination = find_nic(flow.dst);
    if (source == kNone || destination == kNone) throw std::invalid_argument("no host has one of the flow's addresses");
    if (path.empty()) throw std::invalid_argument("a path passes no link");
    for (const PortId port : path.span()) {
      if (port >= far_nodes_.size()) throw std::invalid_argument("a path names a port that does not exist");
    }
    const PortId first = nics_[source].uplink;
    const PortId last = nics_[destination].downlink;
    if ((first != kNone && path.span().front() != first) || (last != kNone && path.span().back() != last)) {
      throw std::invalid_argument("a path does not join the flow's two NICs");
    }
    chosen_.set(flow, path);
  }
  void leave_to_routing(const FiveTuple& flow) { chosen_.clear(flow); }

  // Routes by other tables from now on, with as many columns. Paths chosen for single flows stay.
  void replace(ForwardingTable table) { table_ = std::move(table); }

  // The path of this rank, modulo the number of paths.
  [[nodiscard]] Path path_of_rank(NicId source, NicId destination, std::uint32_t rank) const {
    const Nic& from = nics_[source];
    const Nic& to = nics_[destination];
    return joined(from, to, [&](Path& path) { return walk(path, from.attach, to.attach, rank); });
  }
  [[nodiscard]] std::uint32_t paths(NicId source, NicId destination) const {
    const Nic& from = nics_[source];
    const Nic& to = nics_[destination];
    return from.attach_node == to.attach_node ? 1 : ranks(from.attach, to.attach);
  }

  // Whether `path_of_packet` differs from packet to packet.
  [[nodiscard]] bool per_packet() const { return policy_ == Policy::scatter || policy_ == Policy::presto; }
  [[nodiscard]] Policy policy() const { return policy_; }
  [[nodiscard]] const ForwardingTable& table() const { return table_; }
  [[nodiscard]] NicId find_nic(std::uint32_t ip) const { return by_address_.find(ip); }
  [[nodiscard]] const std::vector<Nic>& nics() const { return nics_; }
  [[nodiscard]] const std::vector<NodeId>& far_nodes() const { return far_nodes_; }

 private:
  [[nodiscard]] std::uint32_t any() { return static_cast<std::uint32_t>(random_.next() >> 32); }

  static void append(Path& path, PortId port) {
    if (!path.add(port)) throw std::length_error("a path passes more than 10 links, which is what a packet can hold");
  }

  template <class Walk>
  [[nodiscard]] Path joined(const Nic& from, const Nic& to, Walk walk_to) const {
    Path path;
    if (from.uplink != kNone) append(path, from.uplink);
    if (!walk_to(path)) return {};
    if (to.downlink != kNone) append(path, to.downlink);
    return path;
  }

  [[nodiscard]] std::uint32_t ranks(std::uint32_t from, std::uint32_t to) const {
    return table_.lists().empty() ? table_.paths(attach_nodes_[from], to) : table_.lists().ranks(from, to);
  }

  // Walks along the path of this rank between two attachments. Returns false if there is none.
  bool walk(Path& path, std::uint32_t from, std::uint32_t to, std::uint32_t rank) const {
    if (attach_nodes_[from] == attach_nodes_[to]) return true;
    const std::uint32_t paths = ranks(from, to);
    if (paths == 0) return false;
    rank %= paths;
    if (!table_.lists().empty()) {
      for (const PortId port : table_.lists().of_rank(from, to, rank)) append(path, port);
      return true;
    }
    for (NodeId node = attach_nodes_[from]; node != attach_nodes_[to]; node = far_nodes_[path.ports[path.hops - 1U]]) {
      append(path, by_rank(table_.group(node, to), rank).port);
    }
    return true;
  }

  template <class Choose>
  bool walk_hops(Path& path, const Nic& from, const Nic& to, Choose choose) const {
    for (NodeId node = from.attach_node; node != to.attach_node; node = far_nodes_[path.ports[path.hops - 1U]]) {
      const auto group = table_.group(node, to.attach);
      if (group.empty()) return false;
      append(path, choose(group, switch_seed(seed_, node)).port);
    }
    return true;
  }

  // Each leg has a rank of its own. A switch without paths to both ends is skipped.
  bool walk_valiant(Path& path, const Nic& from, const Nic& to, std::uint32_t hash) const {
    const auto count = static_cast<std::uint32_t>(attach_nodes_.size());
    const std::uint32_t chosen = mix(hash, seed_) % count;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t by = (chosen + i) % count;
      if (attach_nodes_[by] == kNone || !joins(from.attach, by) || !joins(by, to.attach)) continue;
      return walk(path, from.attach, by, mix(hash, seed_ ^ 0x56414C31U)) &&
             walk(path, by, to.attach, mix(hash, seed_ ^ 0x56414C32U));
    }
    return false;
  }

  [[nodiscard]] bool joins(std::uint32_t from, std::uint32_t to) const { return attach_nodes_[from] == attach_nodes_[to] || ranks(from, to) != 0; }

  std::vector<Nic> nics_;
  NicTable by_address_;
  std::vector<NodeId> far_nodes_;
  ForwardingTable table_;
  std::vector<NodeId> attach_nodes_;  // of each column of the table
  Policy policy_;
  std::uint32_t seed_;
  ChosenPaths chosen_;
  Random random_;  // of `scatter`
  FlowCells cells_;  // of `presto`
};

}  // namespace fabric
