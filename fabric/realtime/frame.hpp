// Ethernet frames of real hosts: how one is stored, and the flow it belongs to.
#pragma once

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "core/hash.hpp"
#include "core/packet.hpp"

namespace fabric {

using Mac = std::array<std::uint8_t, ETH_ALEN>;

// struct virtio_net_hdr of the virtio specification, 5.1.6 (the kernel's own header is not valid C++ on
// every distribution).
struct VirtioHeader {
  std::uint8_t flags;
  std::uint8_t gso_type;  // 0: one segment
  std::uint16_t header_length;
  std::uint16_t gso_size;
  std::uint16_t checksum_start;
  std::uint16_t checksum_offset;
};
static_assert(sizeof(VirtioHeader) == 10);

// The virtio header carries "checksum still to be computed" from the sender's stack to the receiver's,
// so that nobody computes it. Header and frame are contiguous: one copy in, one buffer out.
struct FrameSlot {
  static constexpr std::size_t kHeader = sizeof(VirtioHeader);
  static constexpr std::size_t kCapacity = 2048 - kHeader - sizeof(std::uint16_t);

  std::uint16_t length;  // of the frame, without the virtio header
  std::array<std::uint8_t, kHeader + kCapacity> bytes;

  [[nodiscard]] std::uint8_t* frame() { return bytes.data() + kHeader; }
};
static_assert(sizeof(FrameSlot) == 2048);

namespace detail {

inline std::uint16_t load16(const std::uint8_t* at) {
  return static_cast<std::uint16_t>(at[0] << 8 | at[1]);
}

inline void store16(std::uint8_t* at, std::uint16_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}

inline std::uint32_t load32(const std::uint8_t* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return ntohl(value);
}

}  // namespace detail

// Whether the frame carries a VLAN tag itself (IEEE 802.1Q, 802.1ad): the inner of two, where the kernel took the outer.
inline bool has_vlan_tag(std::span<const std::uint8_t> frame) {
  if (frame.size() < ETH_HLEN) return false;
  const std::uint16_t type = detail::load16(frame.data() + 12);
  return type == ETH_P_8021Q || type == ETH_P_8021AD;
}

// The 5-tuple of an IPv4 frame; nothing for any other frame. Ports are 0 unless the frame is an
// unfragmented TCP or UDP packet, so that all fragments of a datagram take one path.
inline std::optional<FiveTuple> five_tuple(std::span<const std::uint8_t> frame) {
  constexpr std::size_t kIpHeader = 20;
  if (frame.size() < ETH_HLEN + kIpHeader || detail::load16(frame.data() + 12) != ETH_P_IP) return std::nullopt;
  const std::uint8_t* ip = frame.data() + ETH_HLEN;
  const std::size_t header = (ip[0] & 0x0FU) * std::size_t{4};
  if (ip[0] >> 4 != 4 || header < kIpHeader) return std::nullopt;  // its ports would lie within its header
  FiveTuple flow;
  flow.src = detail::load32(ip + 12);
  flow.dst = detail::load32(ip + 16);
  flow.proto = ip[9];
  constexpr std::uint16_t kFragmentBits = 0x3FFF;  // more-fragments flag and offset
  const bool fragment = (detail::load16(ip + 6) & kFragmentBits) != 0;
  const std::size_t transport = ETH_HLEN + header;
  if ((flow.proto == IPPROTO_TCP || flow.proto == IPPROTO_UDP) && !fragment && frame.size() >= transport + 4) {
    flow.sport = detail::load16(frame.data() + transport);
    flow.dport = detail::load16(frame.data() + transport + 2);
  }
  return flow;
}

// The ECN and DSCP fields of an IPv4 frame (RFC 3168, RFC 2474).
inline Ecn ecn_of(const std::uint8_t* frame) { return Ecn(frame[ETH_HLEN + 1] & 0x03U); }
inline std::uint8_t dscp_of(const std::uint8_t* frame) { return static_cast<std::uint8_t>(frame[ETH_HLEN + 1] >> 2); }

// The rank that its sender stamped on an IPv4 frame, in the identification field: a number of 16 bits that grows with
// the rank, 5 of exponent and 11 of mantissa, within 0.05 % of it. All ones: unknown.
inline std::uint32_t rank_of_stamp(std::uint16_t stamp) {
  if (stamp == 0xFFFFU) return Precedence::kLast;
  const std::uint32_t exponent = stamp >> 11;
  const std::uint64_t mantissa = stamp & 0x7FFU;
  if (exponent == 0) return static_cast<std::uint32_t>(mantissa);
  const std::uint64_t rank = (mantissa | 0x800U) << (exponent - 1);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rank, Precedence::kLast));
}

// A frame of TCP without payload goes first: only what carries data is stamped.
inline std::uint32_t rank_of(const std::uint8_t* frame) {
  const std::uint8_t* ip = frame + ETH_HLEN;
  const std::uint32_t headers = (ip[0] & 0x0FU) * 4U;
  const bool tcp = ip[9] == IPPROTO_TCP;
  const std::uint32_t length = detail::load16(ip + 2);
  if (tcp && length < headers + 20U) return Precedence::kFirst;
  if (tcp && length == headers + (ip[headers + 12] >> 4) * 4U) return Precedence::kFirst;
  return rank_of_stamp(detail::load16(ip + 4));
}

// Makes an IPv4 frame "congestion experienced" and its header's checksum right (RFC 1624, equation 3).
// Transport checksums do not cover the field.
inline void mark_ce(std::uint8_t* frame) {
  if (ecn_of(frame) == Ecn::ce) return;
  std::uint8_t* ip = frame + ETH_HLEN;
  const std::uint32_t before = detail::load16(ip);
  ip[1] |= static_cast<std::uint8_t>(Ecn::ce);
  std::uint32_t sum = (~detail::load16(ip + 10) & 0xFFFFU) + (~before & 0xFFFFU) + detail::load16(ip);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  sum = (sum & 0xFFFFU) + (sum >> 16);
  detail::store16(ip + 10, static_cast<std::uint16_t>(~sum));
}

}  // namespace fabric
