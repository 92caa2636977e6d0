// All links and switches of one network, driven by the owner of the clock.
//
// The owner injects packets at hosts and carries out everything due up to an instant. Deliveries and drops are handed
// to `Hosts`, which must provide
//     void deliver(PacketId, Time due);            // the last bit reached the host
//     void dropped(PacketId, PortId, Time when);   // queue full, link cut, lost on the wire, or (kNone) no path
//     void alarm(PacketId, Time due);              // scheduled by `ring_at`
//     void expect(PacketId);                       // optional: it is due soon, and its descriptor in the cache
//     void expect_soon(PacketId);                  // optional: it is due very soon
//     void left(PortId, Time when);                // optional: a packet has left a port that is no FIFO
// and then own the packet (release it, or inject it again). Nothing here depends on which clock it is.
//
// A network whose nodes belong to several partitions is one object to set up, and then one for each partition: all share
// ports, routes and descriptors, and each has its own events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/balancing/registry.hpp"
#include "core/calendar.hpp"
#include "core/disciplines/registry.hpp"
#include "core/memory.hpp"
#include "core/partitions.hpp"
#include "core/packet.hpp"
#include "core/pause_frames.hpp"
#include "core/plan_check.hpp"
#include "core/port.hpp"
#include "core/random.hpp"
#include "core/router.hpp"
#include "core/scheduled_port.hpp"

namespace fabric {

struct NetworkConfig {
  std::vector<PortConfig> ports;
  std::vector<NodeId> far_nodes;  // of each port
  std::vector<Nic> nics;
  ForwardingTable table;
  Policy policy = Policy::hashed;
  PolicyParameters parameters;
  std::uint32_t seed = 0;
  std::size_t max_packets = std::size_t{1} << 20;
  std::shared_ptr<const Opportunities> opportunities;  // of the ports that are `traced`
  SettingsByName queue_settings;                        // of the ports' disciplines
  std::vector<std::uint16_t> partitions;  // of each node; empty: there is one
};

struct Totals {
  std::uint64_t injected = 0;
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t lost = 0;  // at random, on a wire
  std::uint64_t hops = 0;

  Totals& operator+=(const Totals& other) {
    injected += other.injected;
    delivered += other.delivered;
    dropped += other.dropped;
    lost += other.lost;
    hops += other.hops;
    return *this;
  }
};

class Network {
 public:
  using Ports = std::vector<Port, HugePages<Port>>;

  // Throws std::invalid_argument for a plan that does not fit together.
  explicit Network(NetworkConfig config)
      : pool_(checked(config).max_packets), calendar_(calendar_for(config.ports)), shared_(std::make_shared<Shared>(config)) {
    shared_->ports.reserve(config.ports.size());
    for (std::size_t i = 0; i < config.ports.size(); ++i) {
      const auto number = static_cast<PortId>(i);
      Port& port = shared_->ports.emplace_back(config.ports[i], config.far_nodes[i], Random(config.seed, number));
      watch_wires_ = watch_wires_ || port.may_lose();
      if (port.is_scheduled()) add_scheduled(number, config);
    }
    ports_ = shared_->ports;
    scheduled_ = shared_->scheduled;
    if (!scheduled_.empty()) calendar_.always_prefetch();
    share_buffers();
    count_ingresses(config);
    add_balancers(config.parameters, config.seed);
  }

  // The partition with this number of a network in which nothing has happened yet.
  Network(const Network& whole, std::size_t number)
      : pool_(whole.pool_.part(number, whole.partitions().count())), calendar_(calendar_for(leading_into(whole, number))),
        shared_(whole.shared_), ports_(whole.ports_), scheduled_(whole.scheduled_), own_ports_(whole.partitions().ports_of(number)),
        watch_wires_(whole.watch_wires_) {
    calendar_.look_beyond_limits();
    if (!scheduled_.empty()) calendar_.always_prefetch();
    for (const PortId port : own_ports_) ports_[port].lead_to(partitions().beyond(port));
  }

  // Whether `route` is to be called for every packet, because packets of one flow take different paths.
  [[nodiscard]] bool routes_each_packet() const { return steers_ || router().per_packet(); }
  // Gives a packet, whose size is set, its path from NIC to NIC. `flow` is any hash that packets of its flow share.
  void route(PacketId id, NicId from, NicId to, std::uint32_t flow) {
    pool_[id].take(router().path_of_packet(from, to, flow, pool_[id].size_bytes));
    if (steers_) [[unlikely]] {
      const std::vector<Nic>& nics = router().nics();
      pool_.steering(id) = {.to = to, .destination_leaf = nics[to].attach, .flow = flow, .overlay = {nics[from].attach}};
    }
  }
  // The same; a path chosen for the flow takes precedence.
  void route(PacketId id, NicId from, NicId to, const FiveTuple& flow) {
    const Path* chosen = router().chosen(flow);
    if (chosen == nullptr) [[likely]] return route(id, from, to, flow_hash(flow));
    pool_[id].take(*chosen);
    if (steers_) pool_.steering(id).to = kNone;
  }

  // Offers a packet to the first port of its path at time `now`. All its fields but the time are set.
  template <class Hosts>
  void inject(PacketId id, Time now, Hosts& hosts) {
    ++totals_.injected;
    if (pool_[id].hops == 0) [[unlikely]] {
      ++totals_.dropped;
      hosts.dropped(id, kNone, now);
      return;
    }
    send(id, pool_[id], now, hosts);
  }

  // Hands the descriptor back to the hosts at this time. It is an alarm until it is released; `what` is theirs to read.
  void ring_at(PacketId id, std::uint16_t what, Time when) {
    pool_[id].kind = Kind::alarm;
    pool_[id].alarm = what;
    pool_[id].due = when;
    calendar_.push(pool_, id);
  }

  // Carries out everything due up to and including `limit`, in order.
  template <class Hosts>
  void run_until(Time limit, Hosts& hosts) {
    const Ahead<Hosts> ahead{*this, hosts};
    for (PacketId id = calendar_.pop_until(limit, ahead); id != kNone; id = calendar_.pop_until(limit, ahead)) {
      if ((id & kDeparture) != 0) [[unlikely]] {
        depart(id ^ kDeparture, calendar_.left_at(), hosts);
        continue;
      }
      Packet& packet = pool_[id];
      if (packet.kind == Kind::packet) [[likely]] {
        arrive(id, packet, hosts);
      } else if (packet.kind == Kind::alarm) {
        hosts.alarm(id, packet.due);
      } else {
        pause(id, hosts);
      }
    }
  }

  // Puts packets under way to other partitions here from now on.
  void send_into(Outbox& out) { out_ = &out; }
  // Takes what another partition has sent.
  void take(std::vector<Mail>& mail, std::vector<PacketId>& spare) {
    for (const Mail& each : mail) calendar_.push(each.due, each.id);
    for (const PacketId id : spare) pool_.release(id);
    mail.clear();
    spare.clear();
  }
  // Gives descriptors back to the partitions that miss them.
  void give_back_spare() {
    pool_.give_back_spare(kMostSpare, [this](std::size_t to, PacketId id) { out_->give_back(to, id); });
  }

  // Brings all queues and counters to `now`, for reading; of a partition, those of its ports.
  void settle(Time now) {
    if (!partitions().several()) {
      for (Port& port : ports_) port.settle(now);
    }
    for (const PortId port : own_ports_) ports_[port].settle(now);
  }

  template <class Hosts>
  void set_port_up(PortId port, bool up, Time now, Hosts& hosts) {
    if (existing(port).is_scheduled() && ports_[port].is_up() && !up) cut_waiting(port, now, hosts);
    ports_[port].set_up(up, now);
    watch_wires_ = true;
  }
  void set_port_rate(PortId port, std::int64_t rate_bps) { existing(port).set_rate(checked_rate(rate_bps)); }
  // Routes packets from now on by the tables of another plan of this network. Packets under way keep their paths, unless
  // switches choose hop by hop. Throws std::invalid_argument for tables that do not fit.
  void reroute(ForwardingTable table) {
    std::vector<PortConfig> configs;
    for (const Port& port : ports_) configs.push_back(port.config());
    PlanCheck(configs, router().far_nodes(), router().nics(), table, std::min(pool_.capacity(), kMaxPackets)).run();
    const ForwardingTable& before = router().table();
    if (table.attachments() != before.attachments() || table.nodes() != before.nodes()) {
      throw std::invalid_argument("network plan: tables of another network");
    }
    router().replace(std::move(table));
  }
  void restart_max_queues() {
    for (Port& port : ports_) port.restart_max_queue();
  }

  [[nodiscard]] Time next_due() const { return calendar_.next_due(); }
  // A time before which nothing happens, mostly when something does. It is found at once.
  [[nodiscard]] Time nothing_before() const { return calendar_.nothing_before(); }
  [[nodiscard]] std::span<const Port> ports() const { return ports_; }
  [[nodiscard]] PortCounters counters(PortId port) const {
    return ports_[port].counters();
  }
  // Ports of a lossless network that wait for one another and never go on. All partitions must have come equally far.
  [[nodiscard]] std::vector<PortId> deadlocked() const {
    if (!shared_->ingresses) return {};
    std::vector<PortId> stopped;
    Ingresses::Waiting waiting;
    for (PortId port = 0; port < ports_.size(); ++port) {
      if (!ports_[port].is_paused() || !shared_->ingresses->stops(port)) continue;
      stopped.push_back(port);
      scheduled_[port]->each_waiting(pool_, [&](const Packet& packet) {
        if (packet.hop != 0) waiting[{packet.ports[packet.hop - 1U], port}] += packet.size_bytes;
      });
    }
    return shared_->ingresses->deadlocked(std::move(stopped), waiting);
  }
  [[nodiscard]] Port& port(PortId id) { return ports_[id]; }
  [[nodiscard]] const Totals& totals() const { return totals_; }
  [[nodiscard]] const Router& router() const { return shared_->router; }
  [[nodiscard]] Router& router() { return shared_->router; }
  [[nodiscard]] const Partitions& partitions() const { return shared_->partitions; }
  PacketPool& pool() { return pool_; }
  [[nodiscard]] const PacketPool& pool() const { return pool_; }
  void prefer_huge_pages() { pool_.prefer_huge_pages(); }

 private:
  // Descriptors that a partition keeps although it does not need them.
  static constexpr std::size_t kMostSpare = std::size_t{1} << 14;
  static constexpr Time kShortPacket = 64;  // in bytes: an acknowledgement
  static constexpr std::uint64_t kKilobyte = 1024;  // of a cell: Presto's 64 KB are 65 536 bytes
  static constexpr std::uint32_t kBalancing = 0x42414C31;  // XORed with the seed: ports have generators of the same numbers

  // What all partitions share.
  struct Shared {
    explicit Shared(NetworkConfig& config)
        : partitions(std::move(config.partitions), config.far_nodes, config.nics, config.table),
          router(std::move(config.nics), config.far_nodes, std::move(config.table), config.policy, config.seed,
                 config.policy == Policy::presto ? kKilobyte * config.parameters.count("cell_kb", 1) : 0) {}

    Partitions partitions;
    Router router;
    Ports ports;
    std::vector<std::unique_ptr<ScheduledPort>> scheduled;  // of each port, nullptr for FIFOs; empty if all are FIFOs
    std::vector<std::uint64_t> buffered_bytes;         // of each node, in its ports that share a buffer; empty: none do
    std::vector<std::vector<PortId>> buffer_ports;     // of each node: these ports
    std::optional<Ingresses> ingresses;                // of a lossless network
    std::vector<std::unique_ptr<Balancer>> balancers;  // of each node; nullptr for hosts
  };

  // Brings into the cache what an event will need.
  template <class Hosts>
  struct Ahead {
    Network& network;
    Hosts& hosts;

    void first(PacketId id) const {
      if ((id & kDeparture) != 0) [[unlikely]] return network.fetch_scheduled(id ^ kDeparture);
      prefetch_to_write(&network.pool_[id]);
    }
    void far(PacketId id) const {
      if ((id & kDeparture) != 0) [[unlikely]] return;
      const Packet& packet = network.pool_[id];
      if (packet.kind == Kind::packet && !packet.on_last_hop()) {
        const PortId next = packet.ports[packet.hop + 1U];
        network.ports_[next].prefetch();
        if (!network.scheduled_.empty()) [[unlikely]] network.fetch_scheduled(next);
        if (network.pool_.ranks_packets()) [[unlikely]] prefetch_to_write(&network.pool_.precedence(id));
      } else if constexpr (requires { hosts.expect(id); }) {
        hosts.expect(id);
      }
    }
    void near(PacketId id) const {
      if ((id & kDeparture) != 0) [[unlikely]] return;
      const Packet& packet = network.pool_[id];
      if constexpr (requires { hosts.expect_soon(id); }) {
        if (packet.kind == Kind::alarm || (packet.kind == Kind::packet && packet.on_last_hop())) hosts.expect_soon(id);
      }
    }
  };

  template <class Hosts>
  void arrive(PacketId id, Packet& packet, Hosts& hosts) {
    ++totals_.hops;
    if (watch_wires_ && !survives(packet)) [[unlikely]] {
      hosts.dropped(id, packet.port(), packet.due);
      return;
    }
    if (packet.on_last_hop()) {
      ++totals_.delivered;
      hosts.deliver(id, packet.due);
      return;
    }
    ++packet.hop;
    if (steers_ && !steer(id, packet)) [[unlikely]] {
      ++totals_.dropped;
      hosts.dropped(id, kNone, packet.due);
      return;
    }
    send(id, packet, packet.due, hosts);
  }

  // The switch that the packet has reached chooses its next port. Returns false if its path has become too long, or if
  // no next hop is left.
  [[nodiscard]] bool steer(PacketId id, Packet& packet) {
    Steering& steering = pool_.steering(id);
    if (steering.to == kNone) return true;
    const Nic& destination = router().nics()[steering.to];
    const NodeId node = ports_[packet.ports[packet.hop - 1U]].far_node();
    Balancer& balancer = *shared_->balancers[node];
    if (node == destination.attach_node) {
      balancer.leaves(steering, packet.due);
      packet.ports[packet.hop] = destination.downlink;
      packet.hops = packet.hop + 1;
      return true;
    }
    if (packet.hop + 2U > Path::kMostHops) return false;
    const auto hops = those_up(router().table().group(node, destination.attach));
    if (hops.empty()) [[unlikely]] return false;
    packet.ports[packet.hop] = balancer.choose(packet, steering, hops, packet.due);
    packet.hops = packet.hop + 2;
    return true;
  }

  // A switch notices at once that a link of its own is down. If all are, packets are lost there.
  [[nodiscard]] std::span<const GroupMember> those_up(std::span<const GroupMember> hops) {
    if (!watch_wires_) return hops;
    up_.clear();
    std::ranges::copy_if(hops, std::back_inserter(up_), [&](const GroupMember& hop) { return ports_[hop.port].is_up(); });
    return up_.empty() ? hops : up_;
  }

  // Cut links and random loss are noticed at the far end of the wire.
  bool survives(const Packet& packet) {
    Port& port = ports_[packet.port()];
    if (port.was_cut(packet)) {
      port.count_drop();
      ++totals_.dropped;
      return false;
    }
    if (!port.loses()) return true;
    port.advance(packet.due);
    ++totals_.lost;
    return false;
  }

  template <class Hosts>
  void send(PacketId id, Packet& packet, Time now, Hosts& hosts) {
    const PortId to = packet.port();
    Port& port = ports_[to];
    if (port.is_scheduled()) [[unlikely]] {
      if (!wait(id, to, now, hosts)) drop(id, to, now, hosts);
    } else if (port.enqueue(packet, now)) [[likely]] {
      expect_arrival(id, packet.due, port);
    } else {
      drop(id, to, now, hosts);
    }
  }

  template <class Hosts>
  void drop(PacketId id, PortId at, Time now, Hosts& hosts) {
    ++totals_.dropped;
    hosts.dropped(id, at, now);
  }
  // Those that a scheduled port has removed.
  template <class Hosts>
  void drop_removed(PortId at, Time now, Hosts& hosts) {
    if (removed_.empty()) [[likely]] return;
    for (const PacketId id : removed_) drop(id, at, now, hosts);
    removed_.clear();
  }

  void expect_arrival(PacketId id, Time due, const Port& port) {
    if (port.beyond() != Port::kHere) [[unlikely]] return out_->send(port.beyond(), {due, id});
    calendar_.push(due, id);
  }

  void add_scheduled(PortId port, const NetworkConfig& config) {
    const PortConfig& of = config.ports[port];
    const QueueKind& kind = queue_kinds()[of.discipline];
    shared_->scheduled.resize(config.ports.size());
    shared_->scheduled[port] = kind.port(settings_of(kind, config.queue_settings), of.traced ? config.opportunities : nullptr);
    if (kind.reads_precedence) pool_.rank_packets();
  }

  // Ports 2i and 2i + 1 are the two directions of one link.
  [[nodiscard]] NodeId transmitter_of(PortId port) const { return ports_[port ^ 1U].far_node(); }

  void share_buffers() {
    for (PortId port = 0; port < ports_.size(); ++port) {
      if (!kind_of(port).shares_buffer) continue;
      if ((port ^ 1U) >= ports_.size()) throw std::invalid_argument("network plan: ports are pairs, one for each direction");
      shared_->buffered_bytes.resize(router().table().nodes());
      shared_->buffer_ports.resize(router().table().nodes());
      const NodeId node = transmitter_of(port);
      scheduled_[port]->share(shared_->buffered_bytes[node]);
      shared_->buffer_ports[node].push_back(port);
    }
  }

  // One for each switch, if the policy has such.
  void add_balancers(const PolicyParameters& parameters, std::uint32_t seed) {
    const ForwardingTable& table = router().table();
    std::vector<std::uint32_t> leaf_of(table.nodes(), kNone);
    for (const Nic& nic : router().nics()) leaf_of[nic.attach_node] = nic.attach;
    std::vector<std::unique_ptr<Balancer>> out(table.nodes());
    for (NodeId node = 0; node < out.size(); ++node) {
      if (leaf_of[node] == kNone && !table.forwards(node)) continue;
      out[node] = balancer(router().policy(), parameters,
                           {.leaf = leaf_of[node],
                            .leaves = table.attachments(),
                            .uplinks = table.ports_of(node),
                            .ports = ports_,
                            .random = Random(mix(seed, kBalancing), node)});
      if (!out[node]) return;
    }
    if (std::ranges::any_of(router().nics(), [](const Nic& nic) { return nic.uplink == kNone; })) {
      throw std::invalid_argument("network plan: hosts that forward cannot choose next hops by their state");
    }
    shared_->balancers = std::move(out);
    pool_.steer_packets();
    steers_ = true;
  }

  [[nodiscard]] const QueueKind& kind_of(PortId port) const { return queue_kinds()[ports_[port].config().discipline]; }

  // Throws std::invalid_argument if some ports could be stopped and others not.
  void count_ingresses(const NetworkConfig& config) {
    const auto lossless = [](const PortConfig& port) { return queue_kinds()[port.discipline].lossless; };
    if (std::ranges::none_of(config.ports, lossless)) return;
    if (!std::ranges::all_of(config.ports, lossless)) {
      throw std::invalid_argument("network plan: either all ports are lossless or none");
    }
    shared_->ingresses.emplace(settings_of(kind_of(0), config.queue_settings), ports_.size());
  }

  // A switch has taken the packet.
  void take_in(const Packet& packet, Time now) {
    const PortId from = packet.ports[packet.hop - 1U];
    if (shared_->ingresses->take(from, packet.size_bytes)) send_pause(from, true, now);
  }
  void let_out(const Packet& packet, Time now) {
    if (!shared_->ingresses || packet.hop == 0) return;
    const PortId from = packet.ports[packet.hop - 1U];
    if (shared_->ingresses->give_back(from, packet.size_bytes)) send_pause(from, false, now);
  }

  void send_pause(PortId to, bool stops, Time now) {
    const PacketId id = pool_.acquire_or_throw();
    const Port& port = ports_[to];
    Packet& frame = pool_[id];
    frame.kind = Kind::pause;
    frame.ports[0] = to;
    frame.stops = stops ? 1 : 0;
    frame.due = now + port.transmission_time(kPauseFrameBytes) + port.delay();
    if (port.beyond() != Port::kHere) return out_->send(partitions().of_port(to), {frame.due, id});
    calendar_.push(frame.due, id);
  }

  template <class Hosts>
  void pause(PacketId id, Hosts& hosts) {
    const auto [to, stops, when] = std::tuple(pool_[id].ports[0], pool_[id].stops != 0, pool_[id].due);
    pool_.release(id);
    scheduled_[to]->pause(surroundings(), ports_[to], stops, when);
    drop_removed(to, when, hosts);
  }

  [[nodiscard]] Surroundings surroundings() { return {pool_, calendar_, removed_}; }
  void fetch_scheduled(PortId port) const {
    if (const ScheduledPort* of = scheduled_[port].get()) {
      prefetch_to_write(of);
      ports_[port].prefetch_scheduled();
    }
  }
  [[nodiscard]] Port& existing(PortId port) {
    if (port >= ports_.size()) throw std::out_of_range("there is no port " + std::to_string(port));
    return ports_[port];
  }

  template <class Hosts>
  [[nodiscard]] bool wait(PacketId id, PortId to, Time now, Hosts& hosts) {
    ScheduledPort& port = *scheduled_[to];
    if (port.shares() && !port.switch_has_room(ports_[to], pool_[id])) catch_up_switch(transmitter_of(to), now, hosts);
    const bool counted = shared_->ingresses && pool_[id].hop != 0;
    if (counted && !shared_->ingresses->has_room(pool_[id].ports[pool_[id].hop - 1U], pool_[id].size_bytes)) {
      ports_[to].count_drop();
      return false;
    }
    const bool kept = port.enqueue(surroundings(), ports_[to], id, now);
    drop_removed(to, now, hosts);
    if (kept && counted) take_in(pool_[id], now);
    return kept;
  }

  // What leaves other ports of the switch at the same instant has left the shared buffer, too.
  template <class Hosts>
  void catch_up_switch(NodeId node, Time now, Hosts& hosts) {
    for (const PortId port : shared_->buffer_ports[node]) {
      scheduled_[port]->catch_up(surroundings(), ports_[port], now);
      drop_removed(port, now, hosts);
    }
  }

  // A scheduled port has sent a packet. Apart from the loop over events, so that this stays short.
  template <class Hosts>
  [[gnu::noinline]] void depart(PortId from, Time when, Hosts& hosts) {
    Port& port = ports_[from];
    const PacketId id = scheduled_[from]->departed(surroundings(), port, when);
    drop_removed(from, when, hosts);
    if (shared_->ingresses) [[unlikely]] let_out(pool_[id], when);
    if constexpr (requires { hosts.left(from, when); }) hosts.left(from, when);
    expect_arrival(id, when + port.delay(), port);
  }

  template <class Hosts>
  void cut_waiting(PortId port, Time now, Hosts& hosts) {
    scheduled_[port]->catch_up(surroundings(), ports_[port], now);
    drop_removed(port, now, hosts);
    scheduled_[port]->cut(surroundings(), ports_[port], now);
    for (const PacketId id : removed_) {
      let_out(pool_[id], now);
      pool_[id].due = now;
      calendar_.push(pool_, id);
    }
    removed_.clear();
  }

  static const NetworkConfig& checked(const NetworkConfig& config) {
    PlanCheck(config.ports, config.far_nodes, config.nics, config.table, config.max_packets).run();
    const bool traced = std::ranges::any_of(config.ports, &PortConfig::traced);
    if (traced && !config.opportunities) throw std::invalid_argument("network plan: traced ports need opportunities");
    return config;
  }

  static std::vector<PortConfig> leading_into(const Network& whole, std::size_t partition) {
    std::vector<PortConfig> out;
    for (PortId port = 0; port < whole.ports_.size(); ++port) {
      if (whole.partitions().leads_into(port, partition)) out.push_back(whole.ports_[port].config());
    }
    return out;
  }

  // A slot is no longer than a short packet's hop, and holds about a thousand events at most when all links are busy: new
  // events are then seldom due before those already sorted, and inserting them is cheap. The horizon covers a full
  // queue, unless the links' rates differ too much for that.
  static Calendar calendar_for(const std::vector<PortConfig>& ports) {
    Time longest = kMicrosecond;
    Time width = kSecond;
    double packets_a_second = 0;
    for (const auto& port : ports) {
      const std::uint32_t limit = port.admission.tail.limit_pkts;
      const std::uint32_t most = std::min(limit != 0 ? limit : 128U, 1024U);
      longest = std::max(longest, (most + 1) * (1500 * 8 * kSecond / port.rate_bps) + port.delay);
      // The end of a transmission is an event of its own.
      width = std::min(width, kShortPacket * 8 * kSecond / port.rate_bps + (port.discipline == 0 ? port.delay : 0));
      packets_a_second += static_cast<double>(port.rate_bps) / (1500 * 8);
    }
    width = std::min({width, longest / 1024, static_cast<Time>(1024 * kSecond / std::max(packets_a_second, 1.0))});
    const int width_log2 = std::clamp(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(width))) - 1, 0, 31);
    const int slots_log2 = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(longest) >> width_log2));
    return Calendar(width_log2, std::clamp(slots_log2, 10, 16));
  }

  PacketPool pool_;
  Calendar calendar_;
  std::shared_ptr<Shared> shared_;
  std::span<Port> ports_;            // of all partitions
  std::span<const std::unique_ptr<ScheduledPort>> scheduled_;  // the same
  std::vector<PacketId> removed_;  // by the scheduled port that is at work
  std::vector<PortId> own_ports_;    // of this one, if there are several
  Outbox* out_ = nullptr;
  bool watch_wires_ = false;  // a link may lose packets, or was cut
  bool steers_ = false;       // switches choose next hops by their state
  std::vector<GroupMember> up_;
  Totals totals_;
};

}  // namespace fabric
