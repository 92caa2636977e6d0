// A flow between two hosts: its data, in segments, and what of it has arrived in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "simulation/arrivals.hpp"
#include "simulation/congestion/congestion.hpp"

namespace fabric {

struct Connection {
  std::uint32_t first = 0;  // subflow
  std::uint32_t count = 0;
  const CongestionControl* control = nullptr;
  std::uint64_t size_bytes = 0;  // 0: no end
  Seq segments = kNone;          // kNone: no end
  Time start = 0;
  Time started = kNever;
  Time completed = kNever;
  std::uint32_t then = kNone;  // the connection that waits for this one
  std::uint16_t payload_bytes = 0;  // of a full segment
  bool open = false;
  // The sender.
  Seq next = 0;                  // the first segment given to no subflow yet
  Seq una = 0;                   // the first not acknowledged
  Seq window_end = kNone;        // the first the receiver has no room for
  std::vector<Seq> to_reinject;  // given to a subflow that timed out
  // The receiver.
  Arrivals arrivals;

  [[nodiscard]] std::uint64_t delivered_bytes() const {
    const std::uint64_t whole = std::uint64_t{arrivals.next()} * payload_bytes;
    return size_bytes == 0 ? whole : std::min(whole, size_bytes);
  }
  [[nodiscard]] bool multipath() const { return count > 1; }
  [[nodiscard]] std::uint16_t payload_of(Seq dsn) const {
    if (size_bytes == 0 || dsn + 1 != segments) return payload_bytes;
    return static_cast<std::uint16_t>(size_bytes - std::uint64_t{dsn} * payload_bytes);
  }
};

}  // namespace fabric
