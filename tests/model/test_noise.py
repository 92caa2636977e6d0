"""The arithmetic of stalls: the share of packets that are late by an amount, and stalls for a lateness."""

from __future__ import annotations

import dataclasses
import json
import random

import pytest

from common.errors import UsageError
from model.noise import (
    delay_budget_us,
    late_share,
    lateness_ms,
    parse_stalls,
    stalls_of,
    stalls_words,
)
from model.spec import LinkSpec, NoiseSpec, RunSpec


def drawn_lateness_ms(noise: NoiseSpec, packets: int) -> list[float]:
    """Return the lateness of packets that are due at random times while stalls follow one another."""
    rng, late, stalls = random.Random(7), [], 20_000
    begins = at_ms = 0.0
    ends = []
    for _ in range(stalls):
        at_ms += rng.expovariate(1 / (noise.every_ms - (noise.least_ms + noise.most_ms) / 2))
        begins, at_ms = at_ms, at_ms + rng.uniform(noise.least_ms, noise.most_ms)
        ends.append((begins, at_ms))
    due = iter(sorted(rng.uniform(0, at_ms) for _ in range(packets)))
    when = next(due)
    for begin, end in ends:
        while when is not None and when <= end:
            late.append(max(0.0, end - when) if when > begin else 0.0)
            when = next(due, None)  # type: ignore[assignment]
    return sorted(late)


@pytest.mark.parametrize(
    "noise", [NoiseSpec("all", 100, 2, 6), NoiseSpec("all", 40, 5, 5), stalls_of("hosts", 4)]
)
def test_quantiles_are_those_of_packets_due_at_random(noise: NoiseSpec) -> None:
    late = drawn_lateness_ms(noise, 400_000)
    for quantile in (0.9, 0.97, 0.99, 0.999):
        seen = late[int(quantile * len(late))]
        assert lateness_ms(noise, quantile) == pytest.approx(seen, rel=0.05, abs=0.1)
    share = sum(x > 0 for x in late) / len(late)
    assert share == pytest.approx(noise.share, rel=0.03)


@pytest.mark.parametrize("p99_ms", [0.5, 2, 20, 50])
def test_stalls_have_the_lateness_asked_for(p99_ms: float) -> None:
    noise = stalls_of("fabric", p99_ms)
    assert lateness_ms(noise, 0.99) == pytest.approx(p99_ms, rel=1e-4)
    assert noise.share == pytest.approx(0.0375, rel=1e-4)


def test_lateness_inverts_the_share_and_never_falls() -> None:
    noise = NoiseSpec("all", 100, 2, 6)
    seen = [lateness_ms(noise, q / 1000) for q in range(900, 1000)]
    assert seen == sorted(seen)
    assert seen[0] == 0.0 < seen[-1] < 6
    for quantile in (0.97, 0.985, 0.99, 0.999):
        assert late_share(noise, lateness_ms(noise, quantile)) == pytest.approx(1 - quantile)


def test_a_full_queue_is_most_of_the_delay() -> None:
    """10 Mb/s, 100 packets of 1514 bytes: 121.1 ms; six links beside it: 7.3 ms, and 1 ms each to cross."""
    spec = RunSpec(LinkSpec(10, 1000.0, 100))
    assert delay_budget_us(spec, 6) == pytest.approx(121_120 + 6 * (1211.2 + 1000))
    by_bytes = RunSpec(LinkSpec(10, queue_bytes=15140))
    assert delay_budget_us(by_bytes, 6) == pytest.approx(12_112 + 6 * 1211.2)


@pytest.mark.parametrize("text", ["all:100:2-6", "fabric:33.3:0.5-2", "hosts:200:20-20"])
def test_words_are_what_is_typed(text: str) -> None:
    assert stalls_words(parse_stalls(text)) == text


def test_none_is_no_stalls_and_no_lateness() -> None:
    none = parse_stalls("none")
    assert none == NoiseSpec() and not stalls_words(none)
    assert lateness_ms(none, 0.999) == none.share == 0.0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all", "write WHERE"),
        ("all:100", "write WHERE"),
        ("all:1.2.3:2-6", "write WHERE"),
        ("disk:100:2-6", "choose from: fabric, hosts, all"),
        ("all:100:6-2", "LEAST must not exceed MOST"),
        ("all:100:0-2", "LEAST must not exceed MOST"),
        ("all:5000:2-600", "at most 500"),
        ("all:10:4-8", "60 % of the time"),
        ("all:0:4-8", "of the time"),
    ],
)
def test_what_cannot_be_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_stalls(text)


def test_specs_with_noise_come_back_from_json_and_have_names_of_their_own() -> None:
    spec = RunSpec(LinkSpec(10))
    noisy = dataclasses.replace(spec, noise=stalls_of("all", 4), clock="strict")
    assert RunSpec.from_json(json.loads(json.dumps(noisy.to_json()))) == noisy
    hashes = {s.content_hash() for s in (spec, noisy, dataclasses.replace(noisy, clock="elastic"))}
    assert len(hashes) == 3
