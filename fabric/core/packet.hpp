// A packet in the fabric: a descriptor of one cache line. Its content (the frame of a real host, or the segment of a
// simulated one) belongs to the hosts and is found by the same PacketId.
//
// The descriptor holds the ports on the packet's path and the time at which it is due, so a hop touches only the
// packet's cache line and that of the next port.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/memory.hpp"
#include "core/units.hpp"

namespace fabric {

// What a discipline may know of a packet beside its descriptor: how urgent it is, and its flow. The descriptor's cache
// line has no room for it, so it has a table of its own, which exists only where a discipline reads it. A smaller rank
// goes first: what remains of the packet's flow, in bytes. The flow is any number that its packets share.
struct Precedence {
  static constexpr std::uint32_t kFirst = 0;
  static constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t rank = kLast;
  std::uint32_t flow = 0;
};

// The fields that CONGA's leaves add to a packet (SIGCOMM 2014, section 3.1): leaves are columns of the forwarding
// table, a path is the number of an uplink of its source leaf.
struct Overlay {
  static constexpr std::uint8_t kNoPath = 0xFF;

  std::uint32_t source_leaf = 0;
  std::uint8_t path = 0;        // LBTag
  std::uint8_t congestion = 0;  // CE
  std::uint8_t feedback_path = kNoPath;
  std::uint8_t feedback = 0;
};

// What switches that choose the next hop read of a packet: a table of its own, as for Precedence.
struct Steering {
  NicId to = kNone;  // kNone: the packet follows the path that it has
  std::uint32_t destination_leaf = 0;
  std::uint32_t flow = 0;  // hash
  Overlay overlay;
};

// In-band network telemetry (HPCC, SIGCOMM 2019, section 3.1): what the port of a switch writes into a packet that wants
// it, when it begins to send it.
struct HopReading {
  PortId port = kNone;
  std::uint32_t queue_bytes = 0;  // that wait behind the packet
  std::uint64_t sent_bytes = 0;   // since the beginning, with the packet
  std::int64_t rate_bps = 0;
  Time at = 0;
};

// The ECN field of an IP header (RFC 3168, section 5). A sender that understands marks sets one of the ECT codepoints,
// which a queue may change to "congestion experienced".
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

// A packet is due at the far end of its port. An alarm is handed back to the hosts when it is due. A pause frame is due at
// the port that it stops, or lets go on.
enum class Kind : std::uint8_t { packet, alarm, pause };

// The ports from one host to another, in order. The longest paths are those through a random switch in a tree of three
// layers (Valiant), and those in a server-centric network of five levels.
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

// What it carries of that, along its path: a table of its own, as for Precedence. Readings take no bytes on the wire.
struct Telemetry {
  bool wanted = false;
  std::uint8_t hops = 0;
  std::array<HopReading, Path::kMostHops> readings{};

  void add(const HopReading& reading) {
    if (hops < readings.size()) readings[hops++] = reading;
  }
};

struct alignas(64) Packet {
  Time due = 0;  // when it arrives at the far end of the port it is in; or when an alarm rings
  PacketId next_in_slot = kNone;
  std::uint32_t owner = 0;  // set and read by the hosts: a NIC, a subflow, a timer's owner
  std::array<PortId, Path::kMostHops> ports{};
  union {
    std::uint16_t size_bytes = 0;  // as counted against rates and byte limits
    std::uint16_t alarm;           // which alarm it is, to the hosts
    std::uint16_t stops;           // a pause frame: whether the port stops (1) or goes on (0)
  };
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

// Allocates descriptors, the most recently released first: its cache line is still in the cache. Several pools can share
// the descriptors, each with numbers of its own to begin with; any of them may release a descriptor.
class PacketPool {
 public:
  explicit PacketPool(std::size_t capacity)
      : shared_(std::make_shared<Shared>(capacity)), packets_(&shared_->packets[0]), end_(capacity) {}

  // The pool with this number of `count` equal parts.
  [[nodiscard]] PacketPool part(std::size_t number, std::size_t count) const {
    PacketPool out = *this;
    out.own_ = capacity() / count;
    out.first_ = out.used_ = number * out.own_;
    out.end_ = out.first_ + out.own_;
    return out;
  }

  // kNone when every descriptor is in use.
  PacketId acquire() {
    if (!free_.empty()) {
      const PacketId id = free_.back();
      free_.pop_back();
      return id;
    }
    return used_ < end_ ? static_cast<PacketId>(used_++) : kNone;
  }
  // Throws std::length_error when every descriptor is in use.
  PacketId acquire_or_throw() {
    const PacketId id = acquire();
    if (id == kNone) throw std::length_error("every packet descriptor is in use: queues or delays are too large");
    return id;
  }
  void release(PacketId id) { free_.push_back(id); }
  void prefer_huge_pages() { shared_->packets.prefer_huge_pages(); }

  // Calls `give(part, id)` for the descriptors released long ago, if there are more than `most`, that were another
  // part's to begin with.
  template <class Give>
  void give_back_spare(std::size_t most, Give give) {
    if (free_.size() <= most) [[likely]] return;
    const auto kept = free_.begin() + static_cast<std::ptrdiff_t>(free_.size() - most / 2);
    auto to = free_.begin();
    for (auto at = free_.begin(); at != kept; ++at) {
      if (*at >= first_ && *at < end_) {
        *to++ = *at;
      } else {
        give(*at / own_, *at);
      }
    }
    free_.erase(to, kept);
  }

  Packet& operator[](PacketId id) { return packets_[id]; }
  const Packet& operator[](PacketId id) const { return packets_[id]; }

  // Keeps a Precedence for every packet from now on. Without it there is none to read or to write.
  void rank_packets() {
    if (!shared_->precedences) shared_->precedences.emplace(capacity());
    annotates_ = true;
  }
  [[nodiscard]] bool ranks_packets() const { return annotates_ && shared_->precedences.has_value(); }
  Precedence& precedence(PacketId id) { return (*shared_->precedences)[id]; }

  // Whether there is a Precedence or a Telemetry: one test for most packets, which have neither.
  [[nodiscard]] bool annotates() const { return annotates_; }

  // The same of a Steering.
  void steer_packets() {
    if (!shared_->steerings) shared_->steerings.emplace(capacity());
  }
  Steering& steering(PacketId id) { return (*shared_->steerings)[id]; }

  // The same of a Telemetry.
  void measure_packets() {
    if (!shared_->telemetries) shared_->telemetries.emplace(capacity());
    annotates_ = true;
  }
  [[nodiscard]] bool measures_packets() const { return annotates_ && shared_->telemetries.has_value(); }
  Telemetry& telemetry(PacketId id) { return (*shared_->telemetries)[id]; }

  // Of several parts, the sum of what each returns is that of the whole.
  [[nodiscard]] std::ptrdiff_t in_use() const {
    return static_cast<std::ptrdiff_t>(used_ - first_) - static_cast<std::ptrdiff_t>(free_.size());
  }
  // Of all that share the descriptors.
  [[nodiscard]] std::size_t capacity() const { return shared_->packets.capacity(); }

 private:
  struct Shared {
    explicit Shared(std::size_t capacity) : packets(capacity) {}

    VirtualArray<Packet> packets;
    std::optional<VirtualArray<Precedence>> precedences;
    std::optional<VirtualArray<Steering>> steerings;
    std::optional<VirtualArray<Telemetry>> telemetries;
  };

  std::shared_ptr<Shared> shared_;
  Packet* packets_;
  std::vector<PacketId> free_;
  std::size_t used_ = 0;  // all before it, from `first_` on, have been in use
  std::size_t first_ = 0;
  std::size_t end_;
  std::size_t own_ = 0;  // of several parts: the length of each
  bool annotates_ = false;
};

}  // namespace fabric
