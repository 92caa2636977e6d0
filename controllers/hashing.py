"""The hash that chooses among equal paths. `fabric/core` computes the same; tests compare both with vectors.

It has two steps: a CRC over the 5-tuple, once per packet, then a seeded mix of it for every choice.
"""

from __future__ import annotations

import ipaddress
import struct
import zlib
from dataclasses import dataclass

MASK32 = 0xFFFFFFFF
PROTO_TCP = 6
PROTO_UDP = 17
_GOLDEN_RATIO = 0x9E3779B9
"""2^32 / golden ratio: spreads consecutive node indices over all 32 bits."""


@dataclass(frozen=True)
class FiveTuple:
    """IPv4 addresses in dotted notation, IP protocol number, and ports (0 if the protocol has none)."""

    src: str
    dst: str
    proto: int
    sport: int
    dport: int


def flow_hash(ft: FiveTuple) -> int:
    """Return the 32-bit hash of a 5-tuple: zlib's CRC-32 of its fields packed as `!IIBHH`.

    Fields and CRC are those of RipL-POX's `_ecmp_hash` (source: code). RipL-POX packs them with native sizes
    and byte order and so differs between machines; this hash does not. Ports count as 0 unless the protocol
    is TCP or UDP.
    """
    ports = (ft.sport, ft.dport) if ft.proto in (PROTO_TCP, PROTO_UDP) else (0, 0)
    src, dst = int(ipaddress.IPv4Address(ft.src)), int(ipaddress.IPv4Address(ft.dst))
    return zlib.crc32(struct.pack("!IIBHH", src, dst, ft.proto, *ports))


def mix(h: int, seed: int) -> int:
    """Return murmur3's 32-bit finaliser (fmix32) of `h ^ seed`: a bijection of `h` for every seed.

    CRC is linear: a seed XORed into it flips the same bits of every flow's hash, so flows that collide under
    one seed would collide under all. The multiplications prevent that.
    """
    h = (h ^ seed) & MASK32
    h ^= h >> 16
    h = h * 0x85EBCA6B & MASK32
    h ^= h >> 13
    h = h * 0xC2B2AE35 & MASK32
    return h ^ h >> 16


def switch_seed(seed: int, node: int) -> int:
    """Return the seed of the switch with index `node`. Seeds differ, so that successive choices of one flow
    are independent (no polarisation)."""
    return mix(node * _GOLDEN_RATIO & MASK32, seed)
