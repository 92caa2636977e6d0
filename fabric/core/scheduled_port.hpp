// A port whose discipline chooses the next packet when the one before has left. A hop through it costs two events: the
// end of the transmission and the arrival at the far end. At equal times a departure comes before an arrival, as in a
// FIFO. Rate, delay, admission and counters are those of its Port.
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

  // Returns whether the queue takes the packet. Calls `schedule(id)` for the packet that is in transmission then, and
  // `drop(id)` for each packet that was pushed out.
  template <class Schedule, class Drop>
  [[nodiscard]] bool enqueue(PacketPool& pool, Port& port, PacketId id, Time now, Schedule schedule, Drop drop) {
    catch_up(pool, port, now, schedule);
    Packet& packet = pool[id];
    while (port.is_up() && !has_room(port, packet)) {
      const PacketId victim = std::visit([&](auto& queue) { return queue.give_way(pool, id); }, discipline_);
      if (victim == kNone) break;
      push_out(port, pool[victim]);
      ++pushed_out_;
      drop(victim);
    }
    if (!admit(port, packet)) return false;
    std::visit([&](auto& queue) { queue.push(pool, id); }, discipline_);
    if (sending_ == kNone) begin_next(pool, port, std::max(now, port.busy_until_), schedule);
    return true;
  }

  // The transmission of this packet is over. Does nothing if a cut, or a packet at the same instant, came first.
  template <class Schedule>
  void departed(PacketPool& pool, Port& port, PacketId id, Schedule schedule) {
    if (id != sending_) return;
    sending_ = kNone;
    end(port, pool[id]);
    begin_next(pool, port, port.busy_until_, schedule);
  }

  // The link is cut. Calls `lose(id)` for each packet that waits.
  template <class Lose>
  void cut(PacketPool& pool, Lose lose) {
    sending_ = kNone;
    for (PacketId id = next(pool); id != kNone; id = next(pool)) lose(id);
  }

  // Ends the transmissions that are over by `now`.
  template <class Schedule>
  void catch_up(PacketPool& pool, Port& port, Time now, Schedule schedule) {
    while (sending_ != kNone && port.busy_until_ <= now) departed(pool, port, sending_, schedule);
  }

  [[nodiscard]] bool reads_precedence() const { return fabric::reads_precedence(discipline_); }
  // Packets dropped to make room for others.
  [[nodiscard]] std::uint64_t pushed_out() const { return pushed_out_; }

 private:
  [[nodiscard]] PacketId next(PacketPool& pool) {
    return std::visit([&](auto& queue) { return queue.pop(pool); }, discipline_);
  }

  // The transmission begins at `at`, when the one before has ended or later.
  template <class Schedule>
  void begin_next(PacketPool& pool, Port& port, Time at, Schedule schedule) {
    sending_ = next(pool);
    if (sending_ == kNone) return;
    Packet& packet = pool[sending_];
    port.waiting_bytes_ -= packet.size_bytes;
    port.busy_until_ = opportunities_ ? opportunities_->departure(at, packet.size_bytes)
                                      : at + port.transmission_time(packet.size_bytes);
    packet.due = port.busy_until_;
    schedule(sending_);
  }

  [[nodiscard]] static bool has_room(const Port& port, const Packet& packet) {
    return port.config_.admission.tail.has_room(port.length(), packet.size_bytes);
  }
  [[nodiscard]] static bool admit(Port& port, Packet& packet) {
    if (!port.takes(packet)) return false;
    ++port.queued_;
    port.accepted_bytes_ += packet.size_bytes;
    port.waiting_bytes_ += packet.size_bytes;
    packet.epoch = port.epoch_;
    return true;
  }
  static void push_out(Port& port, const Packet& packet) {
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
  std::optional<OpportunityCursor> opportunities_;
  PacketId sending_ = kNone;
  std::uint64_t pushed_out_ = 0;
};

}  // namespace fabric
