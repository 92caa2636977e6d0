// Time is an integer number of picoseconds, so that a byte at 100 Gb/s (80 ps) and a byte at 1 Mb/s
// (8 us) are both exact and a run of 106 days still fits.
#pragma once

#include <cstdint>
#include <limits>

namespace fabric {

using Time = std::int64_t;

inline constexpr Time kNanosecond = 1'000;
inline constexpr Time kMicrosecond = 1'000 * kNanosecond;
inline constexpr Time kMillisecond = 1'000 * kMicrosecond;
inline constexpr Time kSecond = 1'000 * kMillisecond;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

using PacketId = std::uint32_t;
using PortId = std::uint32_t;
using NodeId = std::uint32_t;
using NicId = std::uint32_t;

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

}  // namespace fabric
