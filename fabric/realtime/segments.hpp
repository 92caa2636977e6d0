// Headers of frames that come straight from a host's TCP, before a NIC has cut and finished them.
// Source: tcp_gso_segment in net/ipv4/tcp_offload.c, inet_gso_segment in net/ipv4/af_inet.c.
#pragma once

#include <netinet/tcp.h>

#include <cstdint>
#include <span>

#include "realtime/frame.hpp"

namespace fabric {

// The place of a frame in the GSO packet that it was part of.
struct Segment {
  std::uint16_t gso_size = 0;  // payload of a full segment
  std::uint8_t index = 0;
  bool more = false;  // others follow
};

namespace detail {

inline std::uint16_t folded(std::uint32_t sum) {
  sum = (sum & 0xFFFFU) + (sum >> 16);
  return static_cast<std::uint16_t>(sum + (sum >> 16));
}

inline std::uint32_t sum_of(std::span<const std::uint8_t> words) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) sum += load16(words.data() + i);
  return sum;
}

inline void store32(std::uint8_t* at, std::uint32_t value) {
  store16(at, static_cast<std::uint16_t>(value >> 16));
  store16(at + 2, static_cast<std::uint16_t>(value));
}

inline std::size_t ip_header_bytes(std::span<const std::uint8_t> frame) {
  return (frame[ETH_HLEN] & 0x0FU) * std::size_t{4};
}

// What a transport's checksum field holds while the checksum is still to be computed.
inline std::uint16_t pseudo_header_sum(std::span<const std::uint8_t> frame, std::size_t transport) {
  const auto length = static_cast<std::uint32_t>(frame.size() - transport);
  return folded(sum_of(frame.subspan(ETH_HLEN + 12, 8)) + frame[ETH_HLEN + 9] + length);
}

}  // namespace detail

// Makes the copied headers of a GSO packet those of one of its segments. The frame is IPv4 and TCP.
inline void make_segment(std::span<std::uint8_t> frame, const Segment& segment) {
  constexpr std::uint8_t kFin = 0x01, kPush = 0x08, kCwr = 0x80;
  std::uint8_t* ip = frame.data() + ETH_HLEN;
  const std::size_t ip_bytes = detail::ip_header_bytes(frame);
  detail::store16(ip + 2, static_cast<std::uint16_t>(frame.size() - ETH_HLEN));
  detail::store16(ip + 4, static_cast<std::uint16_t>(detail::load16(ip + 4) + segment.index));
  detail::store16(ip + 10, 0);
  detail::store16(ip + 10, static_cast<std::uint16_t>(~detail::folded(detail::sum_of({ip, ip_bytes}))));
  std::uint8_t* tcp = ip + ip_bytes;
  detail::store32(tcp + 4, detail::load32(tcp + 4) + std::uint32_t{segment.index} * segment.gso_size);
  if (segment.more) tcp[13] &= static_cast<std::uint8_t>(~(kFin | kPush));
  if (segment.index > 0) tcp[13] &= static_cast<std::uint8_t>(~kCwr);
  detail::store16(tcp + 16, detail::pseudo_header_sum(frame, ETH_HLEN + ip_bytes));
}

// The virtio header of an IPv4 frame: whether its transport's checksum is still to be computed. A complete one
// that happens to look the same (1 of 65535) is computed again, and to the same value.
inline VirtioHeader virtio_header(std::span<const std::uint8_t> frame) {
  constexpr std::uint8_t kNeedsChecksum = 1;
  const std::size_t transport = ETH_HLEN + detail::ip_header_bytes(frame);
  const std::uint8_t protocol = frame[ETH_HLEN + 9];
  constexpr std::uint16_t kFragmentBits = 0x3FFF;
  const bool fragment = (detail::load16(frame.data() + ETH_HLEN + 6) & kFragmentBits) != 0;
  if (fragment || (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)) return {};
  const std::uint16_t offset = protocol == IPPROTO_TCP ? 16 : 6;
  if (frame.size() < transport + offset + 2) return {};
  const std::uint16_t field = detail::load16(frame.data() + transport + offset);
  if (field != detail::pseudo_header_sum(frame, transport)) return {};
  return {.flags = kNeedsChecksum,
          .gso_type = 0,
          .header_length = 0,
          .gso_size = 0,
          .checksum_start = static_cast<std::uint16_t>(transport),
          .checksum_offset = offset};
}

}  // namespace fabric
