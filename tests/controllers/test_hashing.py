"""The hash: fixed vectors shared with the C++ core, uniformity, and seeds that matter."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.hashing import PROTO_TCP, PROTO_UDP, FiveTuple, flow_hash, mix, switch_seed

U32 = st.integers(0, 2**32 - 1)


def chi_square_ok(counts: Counter[int], bins: int) -> bool:
    """Return whether the counts of `bins` bins look uniform: the statistic within 5 sigma of its mean."""
    total = sum(counts.values())
    expected = total / bins
    statistic = sum((counts[b] - expected) ** 2 / expected for b in range(bins))
    freedom = bins - 1
    sigma = math.sqrt(2 * freedom)
    return abs(statistic - freedom) <= 5 * sigma + 1


def tcp(sport: int, dport: int = 5001, src: str = "10.0.0.2", dst: str = "10.3.1.3") -> FiveTuple:
    return FiveTuple(src, dst, PROTO_TCP, sport, dport)


def test_flow_hash_vectors() -> None:
    """zlib's CRC-32 of the 13 bytes written out; the C++ core is tested against the same numbers."""
    assert flow_hash(tcp(40000)) == 0xF75B5894
    assert flow_hash(FiveTuple("255.255.255.255", "0.0.0.0", PROTO_UDP, 65535, 0)) == 0xC2E273D1


def test_fmix32_vectors() -> None:
    """Published values of murmur3's finaliser."""
    assert mix(0, 0) == 0
    assert mix(1, 0) == 0x514E28B7
    assert mix(0xFFFFFFFF, 0) == 0x81F16F39


def test_ports_count_for_tcp_and_udp_alone() -> None:
    icmp = FiveTuple("10.0.0.2", "10.3.1.3", 1, 8, 0)
    assert flow_hash(icmp) == flow_hash(FiveTuple(icmp.src, icmp.dst, 1, 0, 7))
    assert flow_hash(tcp(40000)) != flow_hash(tcp(40001))


@given(U32, U32, U32)
def test_mix_is_a_bijection_for_every_seed(a: int, b: int, seed: int) -> None:
    assert 0 <= mix(a, seed) < 2**32
    assert (mix(a, seed) == mix(b, seed)) == (a == b)


@pytest.mark.parametrize("bins", [2, 3, 4, 8, 16, 64])
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_random_flows_spread_evenly(bins: int, seed: int) -> None:
    rng = random.Random(seed)
    hosts = [f"10.{p}.{e}.{h + 2}" for p, e, h in itertools.product(range(8), range(4), range(4))]
    flows = (tcp(rng.randrange(32768, 61000), 5001, *rng.sample(hosts, 2)) for _ in range(8000))
    assert chi_square_ok(Counter(mix(flow_hash(flow), seed) % bins for flow in flows), bins)


@pytest.mark.parametrize("bins", [2, 4, 16])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_consecutive_ports_spread_evenly(bins: int, step: int) -> None:
    """MPTCP subflows differ only in the source port, and the kernel assigns ports in steps."""
    ports = range(32768, 32768 + 6000 * step, step)
    counts = Counter(mix(flow_hash(tcp(port)), 7) % bins for port in ports)
    assert chi_square_ok(counts, bins)


def test_eight_consecutive_subflows_collide_like_random_ones() -> None:
    """8 subflows over 16 paths: 6.45 distinct on average, if independent."""
    distinct = [
        len({mix(flow_hash(tcp(base + i)), 3) % 16 for i in range(8)}) for base in range(33000, 57000, 12)
    ]
    assert sum(distinct) / len(distinct) == pytest.approx(16 * (1 - (15 / 16) ** 8), rel=0.02)


def test_a_seed_changes_which_flows_collide_and_crc_alone_would_not() -> None:
    flows = [flow_hash(tcp(port)) for port in range(33000, 33400)]
    pairs = list(itertools.combinations(flows, 2))
    with_mix = [{pair for pair in pairs if mix(pair[0], s) % 16 == mix(pair[1], s) % 16} for s in (1, 2)]
    with_xor = [{pair for pair in pairs if (pair[0] ^ s) % 16 == (pair[1] ^ s) % 16} for s in (1, 2)]
    assert with_xor[0] == with_xor[1]
    share = len(with_mix[0] & with_mix[1]) / len(with_mix[0])
    assert share == pytest.approx(1 / 16, abs=0.02), "colliding under two seeds is independent"


def test_switch_seeds_differ() -> None:
    seeds = {switch_seed(seed, node) for seed in range(20) for node in range(2000)}
    assert len(seeds) > 0.999 * 20 * 2000
    assert switch_seed(1, 5) == switch_seed(1, 5)
