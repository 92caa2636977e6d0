// The k shortest loopless paths of a graph: Yen, Management Science 17 (1971), with the rule of Lawler, Management
// Science 18 (1972), by which a path deviates only at or behind the node where it left its parent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace fabric {

using NodePath = std::vector<NodeId>;

class Graph {
 public:
  // Of each node, the nodes to which it has a link.
  explicit Graph(std::vector<NodePath> neighbours)
      : near_(std::move(neighbours)), links_(near_.size()), passed_(near_.size()), barred_(near_.size()) {
    for (NodePath& near : near_) {
      std::sort(near.begin(), near.end());
      if (!near.empty() && near.back() >= near_.size()) throw std::invalid_argument("a graph's link leads to no node");
    }
  }

  // At most k paths of at most `most_links` links, shortest first; those of one length in lexicographic order.
  [[nodiscard]] std::vector<NodePath> k_shortest(NodeId source, NodeId target, std::size_t k, std::size_t most_links) {
    if (source >= near_.size() || target >= near_.size()) throw std::invalid_argument("a graph has no such node");
    std::vector<NodePath> found;
    std::set<Candidate> waiting;
    const auto add = [&](const NodePath& root) {
      NodePath path = shortest(found, root, target, most_links);
      if (!path.empty()) waiting.insert({std::move(path), root.size() - 1});
    };
    add({source});
    while (found.size() < k && !waiting.empty()) {
      const Candidate next = std::move(waiting.extract(waiting.begin()).value());
      found.push_back(next.nodes);
      for (std::size_t i = next.left_at; i + 1 < next.nodes.size() && found.size() < k; ++i) {
        add({next.nodes.begin(), next.nodes.begin() + static_cast<std::ptrdiff_t>(i) + 1});
      }
    }
    return found;
  }

 private:
  struct Candidate {
    NodePath nodes;
    std::size_t left_at;  // position of the node where it left the path from which it was made

    bool operator<(const Candidate& other) const {
      if (nodes.size() != other.nodes.size()) return nodes.size() < other.nodes.size();
      return nodes < other.nodes;
    }
  };

  // The first path that begins with `root` and leaves its last node as none of the paths `found` does. Empty for none.
  NodePath shortest(const std::vector<NodePath>& found, const NodePath& root, NodeId target, std::size_t most_links) {
    const NodeId start = root.back();
    if (start == target) return root;
    if (root.size() > most_links) return {};
    std::fill(passed_.begin(), passed_.end(), std::uint8_t{0});
    std::fill(barred_.begin(), barred_.end(), std::uint8_t{0});
    for (const NodeId node : root) passed_[node] = 1;
    for (const NodePath& path : found) {
      if (path.size() > root.size() && std::equal(root.begin(), root.end(), path.begin())) barred_[path[root.size()]] = 1;
    }
    if (!measure(start, target, most_links - root.size())) return {};
    NodePath path = root;
    for (std::uint32_t left = nearest(start); path.back() != target; --left) {
      const NodePath& near = near_[path.back()];
      const bool leaves = path.size() == root.size();
      path.push_back(*std::find_if(near.begin(), near.end(), [&](NodeId node) {
        return links_[node] == left && !(leaves && barred_[node]);
      }));
    }
    return path;
  }

  // Counts the links to the target from nodes that the root does not pass, outwards from the target, until a next hop of
  // `start` is reached. Returns false if none is within `most` links.
  bool measure(NodeId start, NodeId target, std::size_t most) {
    std::fill(links_.begin(), links_.end(), kNone);
    links_[target] = 0;
    reached_.assign(1, target);
    for (std::size_t i = 0; i < reached_.size() && links_[reached_[i]] <= most; ++i) {
      const NodeId node = reached_[i];
      // Now all nodes at this distance are known, and none farther away matters.
      if (!barred_[node] && std::binary_search(near_[start].begin(), near_[start].end(), node)) return true;
      for (const NodeId next : near_[node]) {
        if (links_[next] != kNone || passed_[next]) continue;
        links_[next] = links_[node] + 1;
        reached_.push_back(next);
      }
    }
    return false;
  }

  [[nodiscard]] std::uint32_t nearest(NodeId start) const {
    std::uint32_t links = kNone;
    for (const NodeId node : near_[start]) {
      if (!barred_[node]) links = std::min(links, links_[node]);
    }
    return links;
  }

  std::vector<NodePath> near_;        // ascending
  std::vector<std::uint32_t> links_;  // of each node to the target; kNone: not known
  std::vector<std::uint8_t> passed_;  // by the root
  std::vector<std::uint8_t> barred_;  // as the next hop of the root's last node
  NodePath reached_;
};

}  // namespace fabric
