// A port whose queue (disciplines/queue.hpp) chooses the next packet when the one before has left. A hop through it
// costs two events: the end of the transmission and the arrival at the far end. At equal times a departure comes before
// an arrival, as in a FIFO. Rate, delay, admission and counters are those of its Port.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "core/disciplines/registry.hpp"
#include "core/opportunities.hpp"
#include "core/packet.hpp"
#include "core/port.hpp"
#include "core/units.hpp"

namespace fabric {

class ScheduledPort {
 public:
  // With `opportunities`, packets leave at these instead of at the port's rate.
  explicit ScheduledPort(Discipline discipline, std::shared_ptr<const Opportunities> opportunities = nullptr)
      : discipline_(std::move(discipline)) {
    if (opportunities) opportunities_.emplace(std::move(opportunities));
  }

  // Returns whether the queue keeps the packet. Calls `schedule(id)` for the packet that is in transmission then, and
  // `drop(id)` for each other packet that the queue drops.
  template <class Schedule, class Drop>
  [[nodiscard]] bool enqueue(PacketPool& pool, Port& port, PacketId id, Time now, Schedule schedule, Drop drop) {
    catch_up(pool, port, now, schedule, drop);
    PortNow at = instant(pool, port, now);
    while (port.is_up() && !has_room(port, pool[id]) && make_room(id, at)) settle(pool, port, drop);
    const bool kept = admit(pool, port, id, at);
    settle(pool, port, drop);
    if (kept && sending_ == kNone) begin_next(pool, port, std::max(now, port.busy_until_), schedule, drop);
    account(port.length().bytes);
    return kept;
  }

  // The transmission of this packet is over. Does nothing if a cut, or a packet at the same instant, came first.
  template <class Schedule, class Drop>
  void departed(PacketPool& pool, Port& port, PacketId id, Schedule schedule, Drop drop) {
    if (id != sending_) return;
    sending_ = kNone;
    end(port, pool[id]);
    begin_next(pool, port, port.busy_until_, schedule, drop);
    account(port.length().bytes);
  }

  // The link is cut. Calls `lose(id)` for each packet that waits.
  template <class Lose>
  void cut(PacketPool& pool, Port& port, Time now, Lose lose) {
    sending_ = kNone;
    account(0);
    PortNow at = instant(pool, port, now);
    for (PacketId id = next(at); id != kNone; id = next(at)) lose(id);
    for (const PacketId id : decisions_.dropped) lose(id);
    decisions_ = {};
  }

  // Ends the transmissions that are over by `now`.
  template <class Schedule, class Drop>
  void catch_up(PacketPool& pool, Port& port, Time now, Schedule schedule, Drop drop) {
    while (sending_ != kNone && port.busy_until_ <= now) departed(pool, port, sending_, schedule, drop);
  }

  // A pause frame has arrived. A packet whose turn begins at this instant is sent first.
  template <class Schedule, class Drop>
  void pause(PacketPool& pool, Port& port, bool stops, Time now, Schedule schedule, Drop drop) {
    catch_up(pool, port, now, schedule, drop);
    read_pause(now);
    pause_frames_ += stops ? 1 : 0;
    paused_since_ = now;
    paused_ = stops;
    if (!stops && sending_ == kNone && port.is_up()) begin_next(pool, port, now, schedule, drop);
  }
  // Brings the time that it was paused to `now`.
  void read_pause(Time now) {
    if (paused_) paused_time_ += now - std::exchange(paused_since_, now);
  }
  [[nodiscard]] bool is_paused() const { return paused_; }
  [[nodiscard]] bool is_lossless() const { return fabric::is_lossless(discipline_); }
  [[nodiscard]] PortCounters counters(const Port& port) const {
    PortCounters out = port.counters();
    out.pause_frames = pause_frames_;
    out.paused = paused_time_;
    return out;
  }
  // Calls `see(packet)` for all packets that wait in a queue that shows them.
  template <class See>
  void each_waiting(const PacketPool& pool, See see) const {
    std::visit(
        [&](const auto& queue) {
          if constexpr (requires { queue.each(pool, see); }) queue.each(pool, see);
        },
        discipline_);
  }

  [[nodiscard]] bool reads_precedence() const { return fabric::reads_precedence(discipline_); }

  [[nodiscard]] bool wants_to_share() const { return shares_buffer(discipline_); }
  // Counts what the port holds in this sum over the ports of its switch, which must outlive it.
  void share(std::uint64_t& switch_bytes) { switch_bytes_ = &switch_bytes; }
  [[nodiscard]] bool shares() const { return switch_bytes_ != nullptr; }
  // Whether what the ports of its switch hold leaves room for the packet.
  [[nodiscard]] bool switch_has_room(const Port& port, const Packet& packet) const {
    if (!shares()) [[likely]] return true;
    return std::visit(
        [&]<class Queue>(const Queue& queue) {
          if constexpr (SharesBuffer<Queue>) return queue.has_room(packet, port.length(), *switch_bytes_);
          else return true;
        },
        discipline_);
  }

 private:
  [[nodiscard]] PortNow instant(PacketPool& pool, Port& port, Time now) {
    return {pool, port.random_, decisions_, now, port.config_.rate_bps};
  }

  [[nodiscard]] PacketId next(PortNow& at) {
    return std::visit([&](auto& queue) { return queue.next(at); }, discipline_);
  }

  [[nodiscard]] bool make_room(PacketId newcomer, PortNow& at) {
    return std::visit(
        [&](auto& queue) {
          if constexpr (requires { queue.make_room(newcomer, at); }) return queue.make_room(newcomer, at);
          else return false;
        },
        discipline_);
  }

  // The transmission begins at `when`, when the one before has ended or later.
  template <class Schedule, class Drop>
  void begin_next(PacketPool& pool, Port& port, Time when, Schedule schedule, Drop drop) {
    if (paused_) [[unlikely]] return;
    PortNow at = instant(pool, port, when);
    sending_ = next(at);
    settle(pool, port, drop);
    if (sending_ == kNone) return;
    Packet& packet = pool[sending_];
    port.waiting_bytes_ -= packet.size_bytes;
    if (pool.measures_packets() && packet.hop != 0) [[unlikely]] measure(pool, port, packet, when);
    port.busy_until_ = opportunities_ ? opportunities_->departure(when, packet.size_bytes)
                                      : when + port.transmission_time(packet.size_bytes);
    packet.due = port.busy_until_;
    schedule(sending_);
  }

  // Writes into the packet what a switch that begins to send it measures.
  void measure(PacketPool& pool, const Port& port, const Packet& packet, Time now) {
    Telemetry& telemetry = pool.telemetry(sending_);
    if (!telemetry.wanted) return;
    telemetry.add({.port = packet.port(),
                   .queue_bytes = static_cast<std::uint32_t>(port.waiting_bytes_),
                   .sent_bytes = port.tx_bytes_ + packet.size_bytes,
                   .rate_bps = port.config_.rate_bps,
                   .at = now});
  }

  [[nodiscard]] static bool has_room(const Port& port, const Packet& packet) {
    return port.config_.admission.tail.has_room(port.length(), packet.size_bytes);
  }
  [[nodiscard]] bool admit(PacketPool& pool, Port& port, PacketId id, PortNow& at) {
    Packet& packet = pool[id];
    if (!port.admits(packet)) return false;
    if (!switch_has_room(port, packet)) {
      ++port.drops_;
      return false;
    }
    packet.due = at.now;
    const std::uint16_t bytes = packet.size_bytes;  // the queue may trim it
    if (!std::visit([&](auto& queue) { return queue.arrive(id, at); }, discipline_)) {
      ++port.drops_;
      ++port.early_drops_;
      return false;
    }
    port.take(packet);
    ++port.queued_;
    port.accepted_bytes_ += bytes;
    port.waiting_bytes_ += bytes;
    packet.epoch = port.epoch_;
    return true;
  }

  void account(std::uint64_t bytes) {
    if (!shares()) [[likely]] return;
    *switch_bytes_ += bytes - counted_bytes_;
    counted_bytes_ = bytes;
  }

  // Counts what the queue has decided, and drops what it has removed.
  template <class Drop>
  void settle(PacketPool& pool, Port& port, Drop drop) {
    port.marks_ += std::exchange(decisions_.marks, 0);
    port.accepted_bytes_ -= decisions_.trimmed_bytes;
    port.waiting_bytes_ -= std::exchange(decisions_.trimmed_bytes, 0);
    if (decisions_.dropped.empty() && decisions_.pushed_out.empty()) [[likely]] return;
    port.early_drops_ += decisions_.dropped.size();
    port.pushed_out_ += decisions_.pushed_out.size();
    for (auto* removed : {&decisions_.dropped, &decisions_.pushed_out}) {
      for (const PacketId id : *removed) {
        remove(port, pool[id]);
        drop(id);
      }
      removed->clear();
    }
  }
  static void remove(Port& port, const Packet& packet) {
    --port.queued_;
    port.accepted_bytes_ -= packet.size_bytes;
    port.waiting_bytes_ -= packet.size_bytes;
    ++port.drops_;
  }
  static void end(Port& port, const Packet& packet) {
    --port.queued_;
    ++port.departed_;
    port.tx_bytes_ += packet.size_bytes;
  }

  Discipline discipline_;
  bool paused_ = false;
  std::optional<OpportunityCursor> opportunities_;
  PacketId sending_ = kNone;
  std::uint64_t* switch_bytes_ = nullptr;
  std::uint64_t counted_bytes_ = 0;  // of this port, in the switch's sum
  Time paused_since_ = 0;
  Time paused_time_ = 0;
  std::uint64_t pause_frames_ = 0;
  PortNow::Decisions decisions_;
};

}  // namespace fabric
