// One direction of one link: a transmitter with a rate, a FIFO in front of it and a propagation delay
// behind it.
//
// A FIFO's departure times are known on arrival, so a hop costs one event: the arrival at the far end.
// The queue's length at any instant follows from the departures that lie ahead, exactly.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

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
  std::uint32_t random_pkts = 0;  // the last so many places of the queue are given by chance
};

struct PortCounters {
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t drops = 0;   // queue full, or link cut
  std::uint64_t losses = 0;  // at random, on the wire
  std::uint64_t marks = 0;   // packets that became "congestion experienced" here
  std::uint32_t max_queue_pkts = 0;
};

// What most hops touch is the first cache line. Of the packets queued only the sizes are kept: they leave one
// right after the other, so that all departures follow from the first.
class alignas(64) Port {
 public:
  Port(const PortConfig& config, NodeId far_node, Random random)
      : delay_(config.delay), config_(config), random_(random), far_node_(far_node) {
    configure();
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  Port(Port&&) = default;
  Port& operator=(Port&&) = delete;
  ~Port() = default;

  // Accepts the packet, sets when it arrives at the far end, and tells whether it did: the queue may be full
  // or the link down. The packet in transmission counts as queued. Marks by the length the packet finds, as
  // DCTCP's switches do (Alizadeh et al., SIGCOMM 2010, section 3.1).
  [[nodiscard]] bool enqueue(Packet& packet, Time now) {
    advance(now);
    if (queued_ >= unusual_from_ && !takes(packet)) [[unlikely]] return false;
    busy_until_ = std::max(now, busy_until_) + transmission_time(packet.size_bytes);
    if (queued_ == 0) first_departure_ = busy_until_;
    sizes_[(departed_ + queued_) & mask()] = packet.size_bytes;
    ++queued_;
    packet.due = busy_until_ + delay_;
    packet.epoch = epoch_;
    return true;
  }

  // Brings queue and counters to `now`: what has departed by then is no longer queued.
  void advance(Time now) {
    while (first_departure_ <= now && queued_ != 0) depart();
  }

  // A cut loses what is queued and what is on the wire; the packets find out at their arrival.
  void set_up(bool up, Time now) {
    advance(now);
    if (up == up_) return;
    up_ = up;
    if (!up) cut(now);
    watch_length();
  }

  // From now on what arrives is sent at another rate; what is queued keeps its times.
  void set_rate(std::int64_t rate_bps) {
    write_departures_down();
    config_.rate_bps = rate_bps;
    configure();
  }

  // What a packet that came now would take to the far end.
  [[nodiscard]] Time delay_of(std::uint32_t bytes, Time now) const {
    return std::max<Time>(0, busy_until_ - now) + transmission_time(bytes) + delay_;
  }

  [[nodiscard]] bool was_cut(const Packet& packet) const { return packet.epoch != epoch_; }
  void count_cut() { ++drops_; }

  // Whether the packet that has crossed the wire was lost on it. To be asked once a packet.
  bool loses() {
    if (config_.loss_below == 0 || random_.next() >= config_.loss_below) return false;
    ++losses_;
    return true;
  }
  [[nodiscard]] bool may_lose() const { return config_.loss_below != 0; }

  void restart_max_queue() {
    max_queue_ = queued_;
    watch_length();
  }

  [[nodiscard]] Time transmission_time(std::uint32_t bytes) const {
    return ps_per_byte_ != 0 ? Time{bytes} * ps_per_byte_ : bytes * kPsBits / config_.rate_bps;
  }
  [[nodiscard]] Time delay() const { return delay_; }
  // When the packet in front has left. There must be one.
  [[nodiscard]] Time first_departure() const { return first_departure_; }
  [[nodiscard]] NodeId far_node() const { return far_node_; }
  [[nodiscard]] std::uint32_t queued_pkts() const { return queued_; }
  [[nodiscard]] std::uint64_t queued_bytes() const {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < queued_; ++i) bytes += size_of(i);
    return bytes;
  }
  [[nodiscard]] PortCounters counters() const {
    return {departed_ - cut_, tx_bytes_, drops_, losses_, marks_, max_queue_};
  }
  [[nodiscard]] bool is_up() const { return up_; }

  void prefetch() const { __builtin_prefetch(this); }
  // Once the port itself is there: the places in the ring of the first packet to leave and of the next to come.
  void prefetch_queue() const {
    __builtin_prefetch(sizes_ + (departed_ & mask()));
    __builtin_prefetch(sizes_ + ((departed_ + queued_) & mask()), 1);
  }

 private:
  static constexpr Time kPsBits = 8 * kSecond;  // picoseconds a byte takes at 1 bit/s
  static constexpr std::size_t kLeastRing = 32;
  static constexpr std::uint64_t kFullPacket = 1500;

  [[nodiscard]] std::uint32_t mask() const { return (std::uint32_t{1} << ring_log2_) - 1; }
  [[nodiscard]] std::uint16_t size_of(std::uint32_t place) const { return sizes_[(departed_ + place) & mask()]; }
  [[nodiscard]] std::uint32_t room() const { return static_cast<std::uint32_t>(ring_.size()); }
  [[nodiscard]] std::uint32_t limit_pkts() const { return config_.limit_pkts != 0 ? config_.limit_pkts : kNone; }

  void configure() {
    const std::int64_t per_byte = kPsBits / config_.rate_bps;
    ps_per_byte_ = kPsBits % config_.rate_bps == 0 && per_byte < kNone ? static_cast<std::uint32_t>(per_byte) : 0;
    watch_length();
  }

  void watch_length() {
    const bool always = !up_ || config_.limit_bytes != 0 || config_.mark_pkts != 0 || config_.random_pkts != 0;
    unusual_from_ = always ? 0 : std::min({limit_pkts(), max_queue_, room()});
  }

  // Whether the queue takes the packet; if so there is a place for it.
  [[nodiscard]] bool takes(Packet& packet) {
    if (queued_ >= limit_pkts() || !admits(packet)) {
      ++drops_;
      return false;
    }
    if (queued_ == room()) grow();
    accepted_bytes_ += packet.size_bytes;
    max_queue_ = std::max(max_queue_, queued_ + 1);
    watch_length();
    return true;
  }

  // Everything but a limit in packets. Marks what it lets in.
  [[nodiscard]] bool admits(Packet& packet) {
    if (!up_) return false;
    if (config_.limit_bytes != 0 && accepted_bytes_ - tx_bytes_ + packet.size_bytes > config_.limit_bytes) return false;
    if (config_.random_pkts != 0 && unlucky()) return false;
    if (config_.mark_pkts != 0 && queued_ >= config_.mark_pkts) mark(packet);
    return true;
  }

  // Of the last n places the i-th is refused with probability i / (n + 1): flows that send in step (phase
  // effects: Floyd and Jacobson, 1992) then do not lose in step. A place of a queue counted in bytes is one
  // full packet's.
  [[nodiscard]] bool unlucky() {
    const std::uint32_t n = config_.random_pkts;
    const std::uint64_t left = places_left();
    return left <= n && random_.below(n + 1) <= n - left;
  }

  [[nodiscard]] std::uint64_t places_left() const {
    const std::uint64_t of_packets = limit_pkts() - queued_;
    if (config_.limit_bytes == 0) return of_packets;
    const std::uint64_t bytes_left = config_.limit_bytes - (accepted_bytes_ - tx_bytes_);
    return std::min(of_packets, (bytes_left + kFullPacket - 1) / kFullPacket);
  }

  void mark(Packet& packet) {
    if (packet.ecn == Ecn::not_ect || packet.ecn == Ecn::ce) return;
    packet.ecn = Ecn::ce;
    ++marks_;
  }

  void depart() {
    tx_bytes_ += size_of(0);
    ++departed_;
    --queued_;
    if (times_written_) [[unlikely]] {
      first_departure_ = written_.back();
      written_.pop_back();
      times_written_ = !written_.empty();
    } else {
      first_departure_ = queued_ == 0 ? kNever : first_departure_ + transmission_time(size_of(0));
    }
  }

  void write_departures_down() {
    std::vector<Time> behind_first;
    Time at = first_departure_;
    for (std::uint32_t i = 1; i < queued_; ++i) {
      at = i <= written_.size() ? written_[written_.size() - i] : at + transmission_time(size_of(i));
      behind_first.push_back(at);
    }
    written_.assign(behind_first.rbegin(), behind_first.rend());
    times_written_ = !written_.empty();
  }

  void cut(Time now) {
    ++epoch_;
    cut_ += queued_;
    departed_ += queued_;
    queued_ = 0;
    accepted_bytes_ = tx_bytes_;
    busy_until_ = now;
    first_departure_ = kNever;
    written_.clear();
    times_written_ = false;
  }

  void grow() {
    std::vector<std::uint16_t> wider(std::max(kLeastRing, 2 * ring_.size()));
    for (std::uint32_t i = 0; i < queued_; ++i) wider[(departed_ + i) & (wider.size() - 1)] = size_of(i);
    ring_ = std::move(wider);
    sizes_ = ring_.data();
    ring_log2_ = static_cast<std::uint8_t>(std::countr_zero(ring_.size()));
  }

  Time busy_until_ = 0;
  Time first_departure_ = kNever;
  std::uint16_t* sizes_ = nullptr;
  std::uint64_t departed_ = 0;
  std::uint64_t tx_bytes_ = 0;
  Time delay_;
  std::uint32_t queued_ = 0;
  std::uint32_t unusual_from_ = 0;  // with as many queued the next packet is looked at more closely
  std::uint32_t ps_per_byte_ = 0;   // 0 where it is not a whole number
  std::uint16_t epoch_ = 0;
  std::uint8_t ring_log2_ = 0;
  bool times_written_ = false;
  // The rest.
  std::vector<std::uint16_t> ring_;
  std::vector<Time> written_;        // departures of queued packets from the second on, the last first
  std::uint64_t cut_ = 0;
  std::uint64_t accepted_bytes_ = 0;  // kept where a limit in bytes needs it
  std::uint64_t drops_ = 0;
  std::uint64_t losses_ = 0;
  std::uint64_t marks_ = 0;
  std::uint32_t max_queue_ = 0;
  bool up_ = true;
  PortConfig config_;
  Random random_;
  NodeId far_node_;
};

}  // namespace fabric
