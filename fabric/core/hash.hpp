// Flow hashing: CRC-32 of the packed 5-tuple, as RipL-POX takes it, finished by murmur3's fmix32.
//
// CRC is linear: a seed XORed into it permutes the paths but never changes which two flows share one.
// The finaliser is not linear, so every seed (and every switch under `ecmp`) decides anew.
// controllers/hashing.py is the same arithmetic in Python; a test compares the two.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fabric {

struct FiveTuple {
  std::uint32_t src = 0;  // host byte order
  std::uint32_t dst = 0;
  std::uint8_t proto = 0;
  std::uint16_t sport = 0;  // 0 unless TCP or UDP
  std::uint16_t dport = 0;

  friend bool operator==(const FiveTuple&, const FiveTuple&) = default;
};

namespace detail {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
    table[byte] = crc;
  }
  return table;
}

inline constexpr auto kCrcTable = make_crc_table();

template <class Unsigned>
constexpr std::uint32_t crc_big_endian(std::uint32_t crc, Unsigned value) {
  for (int shift = 8 * (static_cast<int>(sizeof(Unsigned)) - 1); shift >= 0; shift -= 8) {
    const auto byte = static_cast<std::uint32_t>(value >> shift) & 0xFFU;
    crc = (crc >> 8) ^ kCrcTable[(crc ^ byte) & 0xFFU];
  }
  return crc;
}

}  // namespace detail

constexpr std::uint32_t flow_hash(const FiveTuple& flow) {
  std::uint32_t crc = 0xFFFFFFFFU;
  crc = detail::crc_big_endian(crc, flow.src);
  crc = detail::crc_big_endian(crc, flow.dst);
  crc = detail::crc_big_endian(crc, flow.proto);
  crc = detail::crc_big_endian(crc, flow.sport);
  crc = detail::crc_big_endian(crc, flow.dport);
  return ~crc;
}

constexpr std::uint32_t mix(std::uint32_t hash, std::uint32_t seed) {
  std::uint32_t h = hash ^ seed;
  h ^= h >> 16;
  h *= 0x85EBCA6BU;
  h ^= h >> 13;
  h *= 0xC2B2AE35U;
  h ^= h >> 16;
  return h;
}

constexpr std::uint32_t switch_seed(std::uint32_t seed, std::uint32_t node) {
  return mix(node * 0x9E3779B9U, seed);
}

}  // namespace fabric
