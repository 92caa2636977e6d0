// A port whose next packet is chosen when the one before has left. A hop through it costs two events: the end of
// the transmission and the arrival at the far end. At equal times a departure comes before an arrival, as in a FIFO.
#pragma once

#include <algorithm>
#include <utility>
#include <variant>

#include "core/disciplines/registry.hpp"
#include "core/packet.hpp"
#include "core/port.hpp"
#include "core/units.hpp"

namespace fabric {

class Reordering {
 public:
  explicit Reordering(Discipline discipline) : discipline_(std::move(discipline)) {}

  // Takes the packet where the queue lets it in. `schedule(id)` is told of what is then in transmission,
  // `drop(id)` of what had to give way.
  template <class Schedule, class Drop>
  [[nodiscard]] bool accept(PacketPool& pool, Port& port, PacketId id, Time now, Schedule schedule, Drop drop) {
    catch_up(pool, port, now, schedule);
    Packet& packet = pool[id];
    while (port.is_up() && !port.has_room(packet)) {
      const PacketId victim = std::visit([&](auto& queue) { return queue.give_way(pool, packet); }, discipline_);
      if (victim == kNone) break;
      port.pushes_out(pool[victim]);
      drop(victim);
    }
    if (!port.lets_in(packet)) return false;
    std::visit([&](auto& queue) { queue.push(pool, id); }, discipline_);
    if (sending_ == kNone) begin_next(pool, port, std::max(now, port.busy_until()), schedule);
    return true;
  }

  // The transmission of this packet is over; where a cut or a packet at the same instant has told before, nothing
  // is left to be done.
  template <class Schedule>
  void departed(PacketPool& pool, Port& port, PacketId id, Schedule schedule) {
    if (id != sending_) return;
    sending_ = kNone;
    port.ends(pool[id]);
    begin_next(pool, port, port.busy_until(), schedule);
  }

  // The link is cut: what waits goes the way of what is on the wire. `lose(id)` is told of each.
  template <class Lose>
  void cut(PacketPool& pool, Lose lose) {
    sending_ = kNone;
    for (PacketId id = next(pool); id != kNone; id = next(pool)) lose(id);
  }

  template <class Schedule>
  void catch_up(PacketPool& pool, Port& port, Time now, Schedule schedule) {
    while (sending_ != kNone && port.busy_until() <= now) departed(pool, port, sending_, schedule);
  }

 private:
  [[nodiscard]] PacketId next(PacketPool& pool) {
    return std::visit([&](auto& queue) { return queue.pop(pool); }, discipline_);
  }

  template <class Schedule>
  void begin_next(PacketPool& pool, Port& port, Time at, Schedule schedule) {
    sending_ = next(pool);
    if (sending_ == kNone) return;
    port.begins(pool[sending_], at);
    schedule(sending_);
  }

  Discipline discipline_;
  PacketId sending_ = kNone;
};

}  // namespace fabric
