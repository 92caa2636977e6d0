// A packet inside the fabric: a descriptor of one cache line. What it carries (a frame of a real host,
// or a segment of a simulated one) is the hosts' business and is found by the same PacketId.
#pragma once

#include <vector>

#include "core/units.hpp"
#include "core/virtual_array.hpp"

namespace fabric {

// The ECN field of an IP header (RFC 3168, section 5): a sender that understands marks says so by one of
// the ECT codepoints, and a queue may then turn that into "congestion experienced".
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

struct alignas(64) Packet {
  Time departure = 0;            // its last bit leaves the port it is in
  Time injected = 0;             // when its host handed it over
  std::uint32_t size_bytes = 0;  // as counted against rates and byte limits
  std::uint32_t flow_hash = 0;
  std::uint32_t path_rank = 0;  // `hashed`, `scatter`: which of the remaining shortest paths
  NicId destination = 0;
  PortId port = 0;
  PacketId next_in_port = kNone;
  std::uint32_t port_epoch = 0;
  Ecn ecn = Ecn::not_ect;
};
static_assert(sizeof(Packet) == 64);

// Hands out descriptors and takes them back, most recently used first (its line is still in cache).
class PacketPool {
 public:
  explicit PacketPool(std::size_t capacity) : packets_(capacity) {}

  // kNone when every descriptor is in use.
  PacketId acquire() {
    if (!free_.empty()) {
      const PacketId id = free_.back();
      free_.pop_back();
      return id;
    }
    return used_ < packets_.capacity() ? static_cast<PacketId>(used_++) : kNone;
  }
  void release(PacketId id) { free_.push_back(id); }

  Packet& operator[](PacketId id) { return packets_[id]; }
  [[nodiscard]] std::size_t in_use() const { return used_ - free_.size(); }
  [[nodiscard]] std::size_t capacity() const { return packets_.capacity(); }

 private:
  VirtualArray<Packet> packets_;
  std::vector<PacketId> free_;
  std::size_t used_ = 0;
};

}  // namespace fabric
