// One direction of one link: a transmitter with a rate, a FIFO in front of it and a propagation delay
// behind it.
//
// A FIFO's departure times are known on arrival, so a hop costs one event: the arrival at the far end.
// The queue's length at any instant follows from the departures that lie ahead, exactly.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/packet.hpp"
#include "core/random.hpp"
#include "core/units.hpp"

namespace fabric {

// What an administrator sets. A limit of 0 means none, a mark of 0 never.
struct PortConfig {
  std::int64_t rate_bps = 0;
  Time delay = 0;
  std::uint32_t limit_pkts = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t loss_below = 0;  // a packet is lost on the wire if a random 64-bit number is below this
  std::uint32_t mark_pkts = 0;   // an ECN-capable packet that finds as many queued is marked
};

struct PortCounters {
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t drops = 0;   // queue full, or link cut
  std::uint64_t losses = 0;  // at random, on the wire
  std::uint64_t marks = 0;   // packets that became "congestion experienced" here
  std::uint32_t max_queue_pkts = 0;
};

class Port {
 public:
  Port(const PortConfig& config, NodeId far_node, Random random)
      : config_(config), far_node_(far_node), random_(random), ps_per_byte_(kPsBits % config.rate_bps == 0 ? kPsBits / config.rate_bps : 0) {}

  // Accepts the packet and returns its arrival time at the far end, or kNever when the queue is full
  // or the link is down. Drop-tail; the packet in transmission counts as queued. Marks by the length the
  // packet finds, as DCTCP's switches do (Alizadeh et al., SIGCOMM 2010, section 3.1).
  Time enqueue(PacketPool& pool, PacketId id, Time now) {
    advance(pool, now);
    Packet& packet = pool[id];
    if (!up_ || !admits(packet.size_bytes)) {
      ++counters_.drops;
      return kNever;
    }
    if (config_.mark_pkts != 0 && queued_pkts_ >= config_.mark_pkts) mark(packet);
    packet.departure = std::max(now, busy_until_) + transmission_time(packet.size_bytes);
    packet.next_in_port = kNone;
    packet.port_epoch = epoch_;
    busy_until_ = packet.departure;
    (head_ == kNone ? head_ : pool[tail_].next_in_port) = id;
    tail_ = id;
    queued_bytes_ += packet.size_bytes;
    counters_.max_queue_pkts = std::max(counters_.max_queue_pkts, ++queued_pkts_);
    return packet.departure + config_.delay;
  }

  // Brings queue and counters to `now`: what has departed by then is no longer queued.
  void advance(PacketPool& pool, Time now) {
    while (head_ != kNone && pool[head_].departure <= now) {
      const Packet& packet = pool[head_];
      ++counters_.tx_packets;
      counters_.tx_bytes += packet.size_bytes;
      queued_bytes_ -= packet.size_bytes;
      --queued_pkts_;
      head_ = packet.next_in_port;
    }
  }

  // A cut loses what is queued and what is on the wire; the packets find out at their arrival.
  void set_up(bool up, PacketPool& pool, Time now) {
    advance(pool, now);
    if (up == up_) return;
    up_ = up;
    if (up) return;
    ++epoch_;
    head_ = tail_ = kNone;
    queued_pkts_ = 0;
    queued_bytes_ = 0;
    busy_until_ = now;
  }

  [[nodiscard]] bool was_cut(const Packet& packet) const { return packet.port_epoch != epoch_; }
  void count_cut() { ++counters_.drops; }

  // Whether the packet that has crossed the wire was lost on it. To be asked once a packet.
  bool loses() {
    if (config_.loss_below == 0 || random_.next() >= config_.loss_below) return false;
    ++counters_.losses;
    return true;
  }

  void restart_max_queue() { counters_.max_queue_pkts = queued_pkts_; }

  [[nodiscard]] Time transmission_time(std::uint32_t bytes) const {
    return ps_per_byte_ != 0 ? bytes * ps_per_byte_ : bytes * kPsBits / config_.rate_bps;
  }
  [[nodiscard]] NodeId far_node() const { return far_node_; }
  [[nodiscard]] std::uint32_t queued_pkts() const { return queued_pkts_; }
  [[nodiscard]] std::uint64_t queued_bytes() const { return queued_bytes_; }
  [[nodiscard]] const PortCounters& counters() const { return counters_; }
  [[nodiscard]] bool is_up() const { return up_; }

 private:
  static constexpr Time kPsBits = 8 * kSecond;  // picoseconds a byte takes at 1 bit/s

  [[nodiscard]] bool admits(std::uint32_t size_bytes) const {
    if (config_.limit_pkts != 0 && queued_pkts_ >= config_.limit_pkts) return false;
    return config_.limit_bytes == 0 || queued_bytes_ + size_bytes <= config_.limit_bytes;
  }

  void mark(Packet& packet) {
    if (packet.ecn == Ecn::not_ect || packet.ecn == Ecn::ce) return;
    packet.ecn = Ecn::ce;
    ++counters_.marks;
  }

  Time busy_until_ = 0;
  PacketId head_ = kNone;
  PacketId tail_ = kNone;
  std::uint32_t queued_pkts_ = 0;
  std::uint32_t epoch_ = 0;
  std::uint64_t queued_bytes_ = 0;
  PortConfig config_;
  NodeId far_node_;
  Random random_;
  bool up_ = true;
  Time ps_per_byte_;  // 0 where it is not a whole number
  PortCounters counters_;
};

}  // namespace fabric
