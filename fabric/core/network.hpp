// All links and switches of one network, driven by whoever owns the clock.
//
// The owner injects packets at NICs and asks for everything due up to an instant; deliveries, drops and
// unroutable packets are handed to `Hosts`, which must provide
//     void deliver(PacketId, NicId, Time due);      // the last bit reached the host
//     void dropped(PacketId, PortId, Time when);    // queue full, link cut, lost on the wire, or no route behind
// and then own the packet (release it, or inject it again). Nothing here knows which clock it is.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/calendar.hpp"
#include "core/forwarding.hpp"
#include "core/packet.hpp"
#include "core/port.hpp"
#include "core/random.hpp"

namespace fabric {

struct NetworkConfig {
  std::vector<PortConfig> ports;
  std::vector<NodeId> far_nodes;  // of each port
  std::vector<Nic> nics;
  ForwardingTable table;
  Policy policy = Policy::hashed;
  std::uint32_t seed = 0;
  std::size_t max_packets = std::size_t{1} << 20;
};

struct Totals {
  std::uint64_t injected = 0;
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t lost = 0;  // at random, on a wire
  std::uint64_t hops = 0;
};

class Network {
 public:
  explicit Network(NetworkConfig config)
      : pool_(checked(config).max_packets), calendar_(calendar_for(config.ports)), nics_(std::move(config.nics)),
        nic_table_(nics_), table_(std::move(config.table)), policy_(config.policy), seed_(config.seed),
        random_(config.seed, kNone) {
    ports_.reserve(config.ports.size());
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
      ports_.emplace_back(config.ports[i], config.far_nodes[i], Random(config.seed, static_cast<PortId>(i)));
    }
  }

  // Offers a packet to a NIC's transmit queue at time `now`. Its size and ECN field are already set.
  template <class Hosts>
  void inject(PacketId id, NicId source, NicId destination, std::uint32_t hash, Time now, Hosts& hosts) {
    Packet& packet = pool_[id];
    packet.injected = now;
    packet.flow_hash = hash;
    packet.destination = destination;
    if (policy_ != Policy::ecmp) {
      const auto paths = table_.paths(nics_[source].attach_node, nics_[destination].attach);
      packet.path_rank = paths <= 1 ? 0 : policy_ == Policy::hashed ? mix(hash, seed_) % paths : random_.below(paths);
    }
    ++totals_.injected;
    send(id, nics_[source].uplink, now, hosts);
  }

  // Carries out everything due up to and including `limit`, in order.
  template <class Hosts>
  void run_until(Time limit, Hosts& hosts) {
    Event event{};
    while (calendar_.pop_until(limit, event)) arrive(event.what, event.due, hosts);
  }

  // Brings all queues and counters to `now`, for reading.
  void settle(Time now) {
    for (Port& port : ports_) port.advance(pool_, now);
  }

  void set_port_up(PortId port, bool up, Time now) { ports_.at(port).set_up(up, pool_, now); }
  void restart_max_queues() {
    for (Port& port : ports_) port.restart_max_queue();
  }

  [[nodiscard]] Time next_due() const { return calendar_.next_due(); }
  [[nodiscard]] NicId find_nic(std::uint32_t ip) const { return nic_table_.find(ip); }
  [[nodiscard]] const std::vector<Nic>& nics() const { return nics_; }
  [[nodiscard]] const std::vector<Port>& ports() const { return ports_; }
  [[nodiscard]] const Totals& totals() const { return totals_; }
  PacketPool& pool() { return pool_; }

 private:
  template <class Hosts>
  void arrive(PacketId id, Time now, Hosts& hosts) {
    Packet& packet = pool_[id];
    Port& port = ports_[packet.port];
    ++totals_.hops;
    if (port.was_cut(packet)) {
      port.count_cut();
      ++totals_.dropped;
      hosts.dropped(id, packet.port, now);
      return;
    }
    port.advance(pool_, now);
    if (port.loses()) {
      ++totals_.lost;
      hosts.dropped(id, packet.port, now);
      return;
    }
    const Nic& nic = nics_[packet.destination];
    if (packet.port == nic.downlink) {
      ++totals_.delivered;
      hosts.deliver(id, packet.destination, now);
      return;
    }
    const PortId next = next_port(packet, port.far_node(), nic);
    if (next == kNone) {
      ++totals_.dropped;
      hosts.dropped(id, packet.port, now);
      return;
    }
    send(id, next, now, hosts);
  }

  // kNone where the destination cannot be reached (the other plane of a dual-homed network).
  PortId next_port(Packet& packet, NodeId node, const Nic& nic) const {
    if (node == nic.attach_node) return nic.downlink;
    const auto group = table_.group(node, nic.attach);
    if (group.empty()) return kNone;
    return policy_ == Policy::ecmp ? next_by_hash(group, packet.flow_hash, switch_seed(seed_, node))
                                   : next_by_rank(group, packet.path_rank);
  }

  template <class Hosts>
  void send(PacketId id, PortId to, Time now, Hosts& hosts) {
    pool_[id].port = to;
    const Time due = ports_[to].enqueue(pool_, id, now);
    if (due == kNever) {
      ++totals_.dropped;
      hosts.dropped(id, to, now);
      return;
    }
    calendar_.push(due, id);
  }

  static const NetworkConfig& checked(const NetworkConfig& config) {
    if (config.ports.size() != config.far_nodes.size()) throw std::invalid_argument("one far node a port");
    for (const auto& port : config.ports) {
      if (port.rate_bps <= 0) throw std::invalid_argument("a port's rate must be above 0 bit/s");
      if (port.delay < 0) throw std::invalid_argument("a port's delay must not be negative");
    }
    for (const auto& nic : config.nics) {
      if (nic.uplink >= config.ports.size() || nic.downlink >= config.ports.size()) {
        throw std::invalid_argument("a NIC names a port that does not exist");
      }
    }
    return config;
  }

  // Slots of an eighth of the fastest port's 1500-byte time: few events share one.
  static Calendar calendar_for(const std::vector<PortConfig>& ports) {
    std::int64_t fastest = 1'000'000;
    for (const auto& port : ports) fastest = std::max(fastest, port.rate_bps);
    const auto slot = static_cast<std::uint64_t>(1500 * 8 * kSecond / fastest / 8);
    return Calendar(static_cast<int>(std::bit_width(slot | 1U)) - 1, 12);
  }

  PacketPool pool_;
  Calendar calendar_;
  std::vector<Nic> nics_;
  NicTable nic_table_;
  ForwardingTable table_;
  Policy policy_;
  std::uint32_t seed_;
  Random random_;  // of `scatter`
  std::vector<Port> ports_;
  Totals totals_;
};

}  // namespace fabric
