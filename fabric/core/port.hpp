// One direction of one link: a transmitter with a rate, a FIFO in front of it and a propagation delay
// behind it.
//
// A FIFO's departure times are known on arrival, so a hop costs one event: the arrival at the far end.
// The queue's length at any instant follows from the departures that lie ahead, exactly. Where another discipline
// chooses what leaves next (`reorders`), packets wait in it (reordering.hpp), and the port keeps the counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/disciplines/admission.hpp"
#include "core/packet.hpp"
#include "core/prefetch.hpp"
#include "core/queued_sizes.hpp"
#include "core/random.hpp"
#include "core/units.hpp"

namespace fabric {

// What an administrator sets.
struct PortConfig {
  std::int64_t rate_bps = 0;
  Time delay = 0;
  Admission admission;
  std::uint64_t loss_below = 0;  // a packet is lost on the wire if a random 64-bit number is below this
  std::uint8_t discipline = 0;   // of those that reorder, counted from 1; 0: FIFO
};

struct PortCounters {
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t drops = 0;   // queue full, or link cut
  std::uint64_t losses = 0;  // at random, on the wire
  std::uint64_t marks = 0;   // packets that became "congestion experienced" here
  std::uint32_t max_queue_pkts = 0;
};

// What most hops touch is the first two cache lines. Of the packets queued only the sizes are kept: they leave one
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
  // or the link down. The packet in transmission counts as queued. Of a port that reorders, never.
  [[nodiscard]] bool enqueue(Packet& packet, Time now) {
    advance(now);
    if (queued_ >= unusual_from_ && (reorders() || !takes(packet))) [[unlikely]] return false;
    busy_until_ = std::max(now, busy_until_) + transmission_time(packet.size_bytes);
    if (queued_ == 0) first_departure_ = busy_until_;
    sizes_.push(departed_ + queued_, queued_, packet.size_bytes);
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

  // From now on what arrives is sent at another rate; what is queued keeps its times. A port that reorders sends
  // all at the new rate but what is in transmission.
  void set_rate(std::int64_t rate_bps) {
    write_departures_down();
    config_.rate_bps = rate_bps;
    configure();
  }

  // What a packet that came now would take to the far end.
  [[nodiscard]] Time delay_of(std::uint32_t bytes, Time now) const {
    return std::max<Time>(0, busy_until_ - now) + transmission_time(waiting_bytes_ + bytes) + delay_;
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

  // Of a port that reorders: the four steps of a packet, and what may end its waiting.
  [[nodiscard]] bool reorders() const { return config_.discipline != 0; }
  [[nodiscard]] bool has_room(const Packet& packet) const {
    return config_.admission.tail.has_room(length(), packet.size_bytes);
  }
  [[nodiscard]] bool lets_in(Packet& packet) {
    if (!takes(packet)) return false;
    ++queued_;
    waiting_bytes_ += packet.size_bytes;
    packet.epoch = epoch_;
    return true;
  }
  void pushes_out(const Packet& packet) {
    --queued_;
    accepted_bytes_ -= packet.size_bytes;
    waiting_bytes_ -= packet.size_bytes;
    ++drops_;
  }
  // From `at` on, which is not before the last has left. The packet is due when it has left.
  void begins(Packet& packet, Time at) {
    waiting_bytes_ -= packet.size_bytes;
    busy_until_ = at + transmission_time(packet.size_bytes);
    packet.due = busy_until_;
  }
  void ends(const Packet& packet) {
    --queued_;
    ++departed_;
    tx_bytes_ += packet.size_bytes;
  }
  [[nodiscard]] Time busy_until() const { return busy_until_; }

  [[nodiscard]] Time transmission_time(std::uint64_t bytes) const {
    const auto count = static_cast<Time>(bytes);
    return ps_per_byte_ != 0 ? count * ps_per_byte_ : count * kPsBits / config_.rate_bps;
  }
  [[nodiscard]] Time delay() const { return delay_; }
  // When the packet in front has left. There must be one.
  [[nodiscard]] Time first_departure() const { return first_departure_; }
  [[nodiscard]] NodeId far_node() const { return far_node_; }
  [[nodiscard]] std::uint32_t queued_pkts() const { return queued_; }
  [[nodiscard]] PortCounters counters() const {
    return {departed_ - cut_, tx_bytes_, drops_, losses_, marks_, max_queue_};
  }
  [[nodiscard]] bool is_up() const { return up_; }

  void prefetch() const {
    prefetch_to_write(this);
    sizes_.prefetch();
  }

 private:
  static constexpr Time kPsBits = 8 * kSecond;  // picoseconds a byte takes at 1 bit/s

  [[nodiscard]] std::uint16_t size_of(std::uint32_t place) const { return sizes_.at(departed_ + place); }
  [[nodiscard]] QueueLength length() const { return {queued_, accepted_bytes_ - tx_bytes_}; }

  void configure() {
    const std::int64_t per_byte = kPsBits / config_.rate_bps;
    ps_per_byte_ = kPsBits % config_.rate_bps == 0 && per_byte < kNone ? static_cast<std::uint32_t>(per_byte) : 0;
    watch_length();
  }

  void watch_length() {
    const bool always = !up_ || reorders() || !config_.admission.only_counts_packets();
    unusual_from_ = always ? 0 : std::min(config_.admission.tail.most_pkts(), max_queue_);
  }

  // Whether the queue takes the packet; if so there is a place for it.
  [[nodiscard]] bool takes(Packet& packet) {
    const Admitted admitted = up_ ? config_.admission.admits(packet, length(), random_) : Admitted::no;
    if (admitted == Admitted::no) {
      ++drops_;
      return false;
    }
    if (admitted == Admitted::marked) ++marks_;
    accepted_bytes_ += packet.size_bytes;
    max_queue_ = std::max(max_queue_, queued_ + 1);
    watch_length();
    return true;
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
    if (reorders()) return;
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
    waiting_bytes_ = 0;
    busy_until_ = now;
    first_departure_ = kNever;
    written_.clear();
    times_written_ = false;
  }

  Time busy_until_ = 0;
  Time first_departure_ = kNever;
  std::uint64_t departed_ = 0;
  std::uint64_t tx_bytes_ = 0;
  Time delay_;
  std::uint32_t queued_ = 0;
  std::uint32_t unusual_from_ = 0;  // with as many queued the next packet is looked at more closely
  std::uint32_t ps_per_byte_ = 0;   // 0 where it is not a whole number
  std::uint16_t epoch_ = 0;
  bool times_written_ = false;
  QueuedSizes sizes_;
  // The rest.
  std::vector<Time> written_;        // departures of queued packets from the second on, the last first
  std::uint64_t cut_ = 0;
  std::uint64_t accepted_bytes_ = 0;  // kept where every packet is looked at
  std::uint64_t waiting_bytes_ = 0;   // where it reorders, without what is in transmission
  std::uint64_t drops_ = 0;
  std::uint64_t losses_ = 0;
  std::uint64_t marks_ = 0;
  std::uint32_t max_queue_ = 0;
  bool up_ = true;
  PortConfig config_;
  Random random_;
  NodeId far_node_;
};

static_assert(sizeof(Port) == 320);

}  // namespace fabric
