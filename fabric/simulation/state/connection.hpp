// A flow between two hosts: its data, in segments, and how much of it has arrived in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "simulation/state/arrivals.hpp"
#include "simulation/congestion/congestion.hpp"

namespace fabric {

// Data that a subflow may have lost, to be carried by another subflow.
struct Reinjection {
  Seq dsn;
  std::uint32_t from;  // subflow
};

// What the sender and the receiver change is in cache lines of its own: they may be on two CPUs.
struct alignas(64) Connection {
  std::uint32_t first = 0;  // subflow
  std::uint32_t count = 0;
  const CongestionControl* control = nullptr;
  std::uint64_t size_bytes = 0;  // 0: no end
  Seq segments = kNone;          // kNone: no end
  std::uint32_t then = kNone;  // the connection that waits for this one
  Time start = 0;
  Time started = kNever;
  std::uint16_t payload_bytes = 0;  // of a full segment
  bool open = false;
  bool alone = false;  // further subflows have not joined yet
  std::uint8_t dscp = 0;
  // State of the sender.
  alignas(64) Seq next = 0;      // the first segment given to no subflow yet
  Seq una = 0;                   // the first not acknowledged
  Seq window_end = kNone;        // the first the receiver has no room for
  std::vector<Reinjection> to_reinject;
  std::size_t reinjected = 0;     // of those
  bool blocked = false;           // a subflow had room and there was no data for it
  std::uint32_t last_chosen = 0;  // subflow
  std::uint32_t burst_left = 0;   // segments it gets before another is chosen
  std::uint32_t settled = 0;      // bit i: subflow i was found without window, and nothing has happened to it since
  // State of the receiver.
  alignas(64) Arrivals arrivals;
  Time completed = kNever;

  // Whether there is data for this subflow that another may have lost. Skips data that has arrived meanwhile.
  [[nodiscard]] bool has_reinjection(std::uint32_t subflow) {
    while (reinjected != to_reinject.size() && static_cast<std::int32_t>(to_reinject[reinjected].dsn - una) < 0) ++reinjected;
    if (reinjected == to_reinject.size()) {
      to_reinject.clear();
      reinjected = 0;
      return false;
    }
    return to_reinject[reinjected].from != subflow;
  }
  [[nodiscard]] bool has_new(std::uint32_t send_buffer_pkts) const {
    if (next == segments || next == window_end) return false;
    return send_buffer_pkts == 0 || next - una < send_buffer_pkts;
  }

  // The bytes that are not acknowledged, or those that were sent; the largest number if the flow has no end.
  [[nodiscard]] std::uint32_t rank(bool by_sent) const {
    const std::uint64_t bytes = by_sent          ? std::uint64_t{next} * payload_bytes
                                : size_bytes == 0 ? std::uint64_t{kNone}
                                                  : size_bytes - std::min(size_bytes, std::uint64_t{una} * payload_bytes);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kNone));
  }
  [[nodiscard]] std::uint64_t delivered_bytes() const {
    const std::uint64_t whole = std::uint64_t{arrivals.next()} * payload_bytes;
    return size_bytes == 0 ? whole : std::min(whole, size_bytes);
  }
  [[nodiscard]] bool multipath() const { return count > 1; }
  // Of one of its subflows. Those beyond the last bit never settle.
  [[nodiscard]] bool is_settled(std::uint32_t subflow) const { return (settled & bit_of(subflow)) != 0; }
  void settle(std::uint32_t subflow) { settled |= bit_of(subflow); }
  void unsettle(std::uint32_t subflow) { settled &= ~bit_of(subflow); }
  [[nodiscard]] std::uint16_t payload_of(Seq dsn) const {
    if (size_bytes == 0 || dsn + 1 != segments) return payload_bytes;
    return static_cast<std::uint16_t>(size_bytes - std::uint64_t{dsn} * payload_bytes);
  }

 private:
  [[nodiscard]] std::uint32_t bit_of(std::uint32_t subflow) const {
    const std::uint32_t place = subflow - first;
    return place < 32 ? 1U << place : 0;
  }
};

}  // namespace fabric
