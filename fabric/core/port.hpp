// One direction of one link: a queue, a transmitter with a rate, and a propagation delay.
//
// The departure times of a FIFO are known on arrival, so a hop costs one event: the arrival at the far end. The queue's
// length at any instant follows exactly from the departures still to come. Where a discipline chooses the next packet
// (`is_scheduled`), packets wait in ScheduledPort, and Port keeps the counts. Hops of FIFOs touch the first two cache lines
// of a port, those of others the first three.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/disciplines/admission.hpp"
#include "core/packet.hpp"
#include "core/memory.hpp"
#include "core/queued_sizes.hpp"
#include "core/random.hpp"
#include "core/units.hpp"

namespace fabric {

// The configuration of a port.
struct PortConfig {
  std::int64_t rate_bps = 0;
  Time delay = 0;
  Admission admission;
  std::uint64_t loss_below = 0;  // a packet is lost on the wire if a random 64-bit number is below this
  std::uint8_t discipline = 0;   // number of a scheduling discipline (disciplines/registry.hpp); 0: FIFO
  bool traced = false;           // packets leave at the network's delivery opportunities, not at the rate
};

struct PortCounters {
  std::uint64_t tx_packets = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t drops = 0;   // queue full, or link cut
  std::uint64_t losses = 0;  // at random, on the wire
  std::uint64_t marks = 0;   // packets that became "congestion experienced" here
  std::uint32_t max_queue_pkts = 0;
  std::uint64_t pushed_out = 0;   // of the drops: from a full queue, to make room for another packet
  std::uint64_t early_drops = 0;  // of the drops: the queue had room, but its discipline chose to
  std::uint64_t pause_frames = 0;  // that stopped it
  Time paused = 0;                 // for how long it was stopped
};

// A FIFO keeps only the sizes of the queued packets: they leave one right after the other, so all departures follow from
// the first.
class alignas(64) Port {
 public:
  static constexpr std::uint16_t kHere = 0xFFFF;

  Port(const PortConfig& config, NodeId far_node, Random random)
      : delay_(config.delay), is_scheduled_(config.discipline != 0), config_(config), random_(random), far_node_(far_node) {
    configure();
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  Port(Port&&) = default;
  Port& operator=(Port&&) = delete;
  ~Port() = default;

  // Returns whether the FIFO takes the packet, and sets when it arrives at the far end. The queue may be full or the
  // link down. The packet in transmission counts as queued. Not for a scheduled port.
  [[nodiscard]] bool enqueue(Packet& packet, Time now) {
    if (queued_ >= unusual_from_) [[unlikely]] {
      advance(now);
      if (queued_ >= unusual_from_ && !takes(packet)) return false;
    } else if (busy_until_ <= now) {
      all_depart();
    }
    busy_until_ = std::max(now, busy_until_) + transmission_time(packet.size_bytes);
    if (queued_ == 0) first_departure_ = busy_until_;
    sizes_.push(departed_ + queued_, queued_, packet.size_bytes);
    accepted_bytes_ += packet.size_bytes;
    ++queued_;
    packet.due = busy_until_ + delay_;
    packet.epoch = epoch_;
    return true;
  }

  // Brings queue and counters to `now`: packets that have departed by then are no longer queued.
  void advance(Time now) {
    if (first_departure_ > now) return;
    if (busy_until_ <= now) return all_depart();
    while (first_departure_ <= now) depart();
  }

  // Whether at least so many packets are queued at `now`.
  [[nodiscard]] bool holds(std::uint32_t packets, Time now) {
    if (queued_ < packets) return false;
    advance(now);
    return queued_ >= packets;
  }

  // A cut loses the packets in the queue and on the wire; they are dropped when they would arrive.
  void set_up(bool up, Time now) {
    advance(now);
    if (up == up_) return;
    up_ = up;
    if (!up) cut(now);
    watch_length();
  }

  // Packets that arrive from now on are sent at the new rate; queued packets keep their times. A scheduled port sends
  // all packets at the new rate, except the one in transmission.
  void set_rate(std::int64_t rate_bps) {
    write_departures_down();
    config_.rate_bps = rate_bps;
    configure();
  }

  // The time a packet that came now would take to the far end.
  [[nodiscard]] Time delay_of(std::uint32_t bytes, Time now) const {
    const std::uint64_t waiting = is_scheduled_ ? length().bytes - sending_bytes_ : 0;
    return std::max<Time>(0, busy_until_ - now) + transmission_time(waiting + bytes) + delay_;
  }

  [[nodiscard]] bool was_cut(const Packet& packet) const { return packet.epoch != epoch_; }
  void count_drop() { ++drops_; }

  // Whether the packet that has crossed the wire was lost on it. To be called once per packet.
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

  // Whether a discipline chooses the next packet (scheduled_port.hpp). The queue of any other port is a FIFO.
  [[nodiscard]] bool is_scheduled() const { return is_scheduled_; }

  // Rounded down to a picosecond.
  [[nodiscard]] Time transmission_time(std::uint64_t bytes) const {
    return static_cast<Time>(Wide{bytes} * time_per_byte_ >> kFractionBits);
  }
  [[nodiscard]] Time delay() const { return delay_; }
  // When the packet in front has left. There must be one.
  [[nodiscard]] Time first_departure() const { return first_departure_; }
  [[nodiscard]] NodeId far_node() const { return far_node_; }
  [[nodiscard]] const PortConfig& config() const { return config_; }
  // The partition of the far end, if it is another than that of this port; kHere if not.
  [[nodiscard]] std::uint16_t beyond() const { return beyond_; }
  void lead_to(std::uint16_t partition) { beyond_ = partition; }
  [[nodiscard]] std::uint32_t queued_pkts() const { return queued_; }
  // The packet in transmission counts in full.
  [[nodiscard]] std::uint64_t queued_bytes(Time now) {
    advance(now);
    return length().bytes;
  }
  [[nodiscard]] PortCounters counters() const {
    return {departed_ - cut_, tx_bytes_,   drops_,       losses_,       marks_,
            max_queue_,       pushed_out_, early_drops_, pause_frames_, paused_time_};
  }
  [[nodiscard]] bool is_up() const { return up_; }

  // Brings what is to be read to `now`.
  void settle(Time now) {
    advance(now);
    read_pause(now);
  }
  // Brings the time for which pause frames have stopped it to `now`.
  void read_pause(Time now) {
    if (is_paused_) paused_time_ += now - std::exchange(paused_since_, now);
  }
  [[nodiscard]] bool is_paused() const { return is_paused_; }

  void prefetch() const {
    prefetch_to_write(this);
    sizes_.prefetch();
  }
  void prefetch_scheduled() const {
    prefetch();
    prefetch_to_write(&config_);
  }

 private:
  friend class PortNow;
  friend class ScheduledPort;
  template <class Queue>
  friend class QueuedPort;

  __extension__ using Wide = unsigned __int128;

  static constexpr std::uint64_t kPsBits = 8 * kSecond;  // picoseconds a byte takes at 1 bit/s
  static constexpr int kFractionBits = 24;

  [[nodiscard]] std::uint16_t size_of(std::uint32_t place) const { return sizes_.at(departed_ + place); }
  [[nodiscard]] bool has_room(const Packet& packet) const {
    return config_.admission.tail.has_room(length(), packet.size_bytes);
  }
  [[nodiscard]] QueueLength length() const { return {queued_, accepted_bytes_ - tx_bytes_}; }

  void configure() {
    // Rounded up: what a whole number of picoseconds takes at the exact rate is then not rounded down below it.
    const auto rate_bps = static_cast<std::uint64_t>(config_.rate_bps);
    time_per_byte_ = static_cast<std::uint64_t>(((Wide{kPsBits} << kFractionBits) + rate_bps - 1) / rate_bps);
    watch_length();
  }

  void watch_length() {
    const bool always = !up_ || !config_.admission.only_counts_packets();
    unusual_from_ = always ? 0 : std::min({config_.admission.tail.most_pkts(), max_queue_, QueuedSizes::kPlaces});
  }

  // Whether the queue takes the packet. Counts it.
  [[nodiscard]] bool takes(Packet& packet) {
    if (!admits(packet)) return false;
    take(packet);
    return true;
  }

  // Whether limits and random drop let the packet in. Counts it if not.
  [[nodiscard]] bool admits(const Packet& packet) {
    const Admitted admitted = up_ ? config_.admission.admits(packet, length(), random_) : Admitted::full;
    if (admitted == Admitted::yes) return true;
    ++drops_;
    if (admitted == Admitted::early) ++early_drops_;
    return false;
  }

  void take(Packet& packet) {
    if (config_.admission.ecn.marks(packet, length())) ++marks_;
    if (queued_ < max_queue_) return;
    max_queue_ = queued_ + 1;
    watch_length();
  }

  // Without a branch: that the queue is empty already is hard to predict.
  void all_depart() {
    departed_ += queued_;
    queued_ = 0;
    tx_bytes_ = accepted_bytes_;
    first_departure_ = kNever;
    forget_departures();
  }

  // The packet in front, which is not the last.
  void depart() {
    tx_bytes_ += size_of(0);
    ++departed_;
    --queued_;
    if (times_written_) [[unlikely]] {
      first_departure_ = written_.back();
      written_.pop_back();
      times_written_ = !written_.empty();
    } else {
      first_departure_ += transmission_time(size_of(0));
    }
  }

  void forget_departures() {
    if (!times_written_) [[likely]] return;
    written_.clear();
    times_written_ = false;
  }

  void write_departures_down() {
    if (is_scheduled_) return;
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
    sending_bytes_ = 0;
    busy_until_ = now;
    first_departure_ = kNever;
    forget_departures();
  }

  Time busy_until_ = 0;
  Time first_departure_ = kNever;
  std::uint64_t departed_ = 0;
  std::uint64_t tx_bytes_ = 0;
  Time delay_;
  std::uint64_t time_per_byte_ = 0;  // in ps / 2^kFractionBits
  std::uint32_t queued_ = 0;
  std::uint32_t unusual_from_ = 0;  // from this queue length on, every packet is checked
  std::uint16_t epoch_ = 0;
  std::uint16_t beyond_ = kHere;
  bool times_written_ = false;
  bool up_ = true;
  bool is_scheduled_;
  bool is_paused_ = false;
  alignas(64) QueuedSizes sizes_;
  std::uint64_t accepted_bytes_ = 0;  // tx_bytes_ and what is queued
  alignas(64) PortConfig config_;
  std::uint32_t max_queue_ = 0;
  std::uint32_t sending_bytes_ = 0;  // of a scheduled port: the packet in transmission
  // Seldom used.
  Random random_;
  std::uint64_t cut_ = 0;
  std::uint64_t drops_ = 0;
  std::uint64_t losses_ = 0;
  std::uint64_t marks_ = 0;
  std::uint64_t pushed_out_ = 0;
  std::uint64_t early_drops_ = 0;
  std::uint64_t pause_frames_ = 0;
  Time paused_since_ = 0;
  Time paused_time_ = 0;
  std::vector<Time> written_;  // departures of queued packets from the second on, the last first
  NodeId far_node_;
};

static_assert(sizeof(Port) == 320);

}  // namespace fabric
