// What the fabric moves: a descriptor of one cache line. What a packet carries (a frame of a real host, or a
// segment of a simulated one) is the hosts' business and is found by the same PacketId.
//
// The ports it will pass stand in the descriptor itself, and so does when it is due: a hop touches
// the packet's line and the next port's, and nothing else that is not there already.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/units.hpp"
#include "core/virtual_array.hpp"

namespace fabric {

// The ECN field of an IP header (RFC 3168, section 5): a sender that understands marks says so by one of
// the ECT codepoints, and a queue may then turn that into "congestion experienced".
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

// A packet is due at the far end of its port, or, where that reorders, first when it has left (departure). An alarm
// is the hosts' own: it comes due, and is handed back to them.
enum class Kind : std::uint8_t { packet, departure, alarm };

// The ports from a host to another, in order. The longest: up and down a tree of three layers by way of a
// switch elsewhere (Valiant), or a server-centric network of five levels.
struct Path {
  static constexpr std::size_t kMostHops = 10;

  std::array<PortId, kMostHops> ports{};
  std::uint8_t hops = 0;

  [[nodiscard]] bool add(PortId port) {
    if (hops == kMostHops) return false;
    ports[hops++] = port;
    return true;
  }
  [[nodiscard]] bool empty() const { return hops == 0; }
  [[nodiscard]] std::span<const PortId> span() const { return {ports.data(), hops}; }
};

inline constexpr std::uint8_t kDscpBits = 63;

struct alignas(64) Packet {
  Time due = 0;  // when it arrives at the far end of the port it is in; an alarm, when it rings
  PacketId next_in_slot = kNone;
  std::uint32_t owner = 0;  // the hosts' own number: of the NIC, the subflow, the alarm
  std::array<PortId, Path::kMostHops> ports{};
  std::uint16_t size_bytes = 0;  // as counted against rates and byte limits
  std::uint16_t epoch = 0;       // of the port it is in
  std::uint8_t hop = 0;
  std::uint8_t hops = 0;
  Ecn ecn : 2 = Ecn::not_ect;
  std::uint8_t dscp : 6 = 0;  // class of service (RFC 2474)
  Kind kind = Kind::packet;

  void take(const Path& path) {
    ports = path.ports;
    hop = 0;
    hops = path.hops;
  }
  [[nodiscard]] PortId port() const { return ports[hop]; }
  [[nodiscard]] bool on_last_hop() const { return hop + 1 == hops; }
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
  // Throws std::length_error when every descriptor is in use.
  PacketId acquire_or_throw() {
    const PacketId id = acquire();
    if (id == kNone) throw std::length_error("every packet descriptor is in use: queues or delays are too large");
    return id;
  }
  void release(PacketId id) { free_.push_back(id); }
  void prefer_huge_pages() { packets_.prefer_huge_pages(); }

  Packet& operator[](PacketId id) { return packets_[id]; }
  const Packet& operator[](PacketId id) const { return packets_[id]; }
  [[nodiscard]] std::size_t in_use() const { return used_ - free_.size(); }
  [[nodiscard]] std::size_t capacity() const { return packets_.capacity(); }

 private:
  VirtualArray<Packet> packets_;
  std::vector<PacketId> free_;
  std::size_t used_ = 0;
};

}  // namespace fabric
