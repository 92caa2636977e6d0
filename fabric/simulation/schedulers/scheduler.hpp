// A scheduler chooses the subflow that carries a connection's next data. To add one, add a file beside this one and a
// line in `kSchedulers` (registry.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/units.hpp"

namespace fabric {

// What a scheduler knows about a subflow.
struct SubflowView {
  bool takes = false;    // whether it accepts more data now
  bool joined = true;    // whether it can send at all
  double srtt_s = 0;     // 0: not known yet
  double held_pkts = 0;  // given to it and not acknowledged
  double rate_pps = 0;   // its pacing rate; 0: not known yet
  double drain_s = 0;    // the time in which it sends what it holds; 0 if the rate is not known

  void hold(double pkts) {
    held_pkts = pkts;
    drain_s = rate_pps > 0 ? held_pkts / rate_pps : 0.0;
  }
  bool operator==(const SubflowView&) const = default;
};

struct Scheduler {
  std::string_view name;
  // Returns the number of a subflow, or kNone to wait. `last` is the one chosen before.
  std::uint32_t (*choose)(std::span<const SubflowView>, std::uint32_t last);
  // Bytes bound to a subflow at a time, as long as it has room in its buffer; 0: data is bound only when it is sent.
  std::uint32_t burst_bytes = 0;
};

}  // namespace fabric
