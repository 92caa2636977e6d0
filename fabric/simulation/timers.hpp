// Timers of simulated hosts: alarms in the network's calendar, each with its kind and the number of its owner.
#pragma once

#include <cstdint>

#include "core/network.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

enum class Alarm : std::uint16_t { start, follow, join, nic, retransmission, delayed_ack, datagram, agent, pacing };

// A timer that is set, moved and cancelled more often than it expires. It has at most one valid descriptor in the
// calendar, `pending`; a descriptor that comes due and is not the pending one is stale.
struct LazyAlarm {
  Time at = kNever;
  Time pending_at = kNever;
  PacketId pending = kNone;
};

class Timers {
 public:
  explicit Timers(Network& network) : network_(network) {}

  [[nodiscard]] static Alarm alarm_of(const Packet& packet) { return static_cast<Alarm>(packet.size_bytes); }

  // Schedules an alarm that cannot be cancelled. Returns its descriptor.
  PacketId schedule(Alarm what, std::uint32_t owner, Time when) {
    const PacketId id = network_.pool().acquire_or_throw();
    Packet& packet = network_.pool()[id];
    packet.owner = owner;
    packet.size_bytes = static_cast<std::uint16_t>(what);
    network_.ring_at(id, when);
    return id;
  }

  void set(LazyAlarm& alarm, Alarm what, std::uint32_t owner, Time when) {
    alarm.at = when;
    if (alarm.pending != kNone && alarm.pending_at <= when) return;
    alarm.pending = schedule(what, owner, when);
    alarm.pending_at = when;
  }

  // Whether the timer has expired. One that was moved to a later time is scheduled again.
  [[nodiscard]] bool expires(LazyAlarm& alarm, Alarm what, PacketId id, std::uint32_t owner, Time now) {
    if (alarm.pending != id) return false;
    alarm.pending = kNone;
    if (alarm.at == kNever) return false;
    if (alarm.at > now) {
      set(alarm, what, owner, alarm.at);
      return false;
    }
    alarm.at = kNever;
    return true;
  }

 private:
  Network& network_;
};

}  // namespace fabric
