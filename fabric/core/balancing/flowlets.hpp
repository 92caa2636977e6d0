// The flowlet table of a switch (Kandula et al., CCR 2007; CONGA, SIGCOMM 2014, section 3.4). A packet that comes more
// than a gap after the one before it, of the same entry, begins a new flowlet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/forwarding.hpp"
#include "core/memory.hpp"
#include "core/units.hpp"

namespace fabric {

class FlowletTable {
 public:
  // Of the latest packet; all zero before the first.
  struct Entry {
    Time last = 0;
    PortId port_plus_1 = 0;

    // The port of the flow's latest flowlet; kNone if there was none.
    [[nodiscard]] PortId port() const { return port_plus_1 - 1; }
  };

  explicit FlowletTable(Time gap) : gap_(gap), entries_(kEntries) {}

  // Flows whose hashes agree in 16 bits share an entry, as in the switches.
  [[nodiscard]] Entry& of(std::uint32_t flow) { return entries_[flow % kEntries]; }

  // Whether the flowlet goes on, and its port is still a next hop.
  [[nodiscard]] bool goes_on(const Entry& entry, std::span<const GroupMember> hops, Time now) const {
    return now - entry.last <= gap_ && is_hop(entry.port(), hops);
  }

  [[nodiscard]] static bool is_hop(PortId port, std::span<const GroupMember> hops) {
    for (const GroupMember& hop : hops) {
      if (hop.port == port) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 16;  // CONGA, section 3.4: 64K

  Time gap_;
  VirtualArray<Entry> entries_;  // of a switch that sees few flows, few pages are touched
};

}  // namespace fabric
