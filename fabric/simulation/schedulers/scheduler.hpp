// Which subflow a connection's next data goes to. A new scheduler is a file beside this and a line in
// `kSchedulers` (registry.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/units.hpp"

namespace fabric {

// What a scheduler sees of a subflow.
struct SubflowView {
  bool takes = false;    // more data, now
  double srtt_s = 0;     // 0: not known yet
  double held_pkts = 0;  // given to it and not acknowledged
  double rate_pps = 0;   // what it is paced at, 0: not known yet
};

struct Scheduler {
  std::string_view name;
  // The number of a subflow, kNone for "wait". `last` is the one chosen before.
  std::uint32_t (*choose)(std::span<const SubflowView>, std::uint32_t last);
  // Data is bound to a subflow as long as that has buffer, this many bytes at a time; 0: only when it can be sent.
  std::uint32_t burst_bytes = 0;
};

}  // namespace fabric
