"""The BPF objects' fixed-point arithmetic against the papers' formulas in floating point."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.support import coupled_model as model
from tests.support.compiled.arithmetic import (
    ONE_PACKET,
    CPath,
    balia_after_loss,
    c_path,
    compiled,
    grown,
    model_paths,
    per_ack,
)

Model = Callable[[Sequence[model.Path], int], float]
COUPLED: dict[str, Model] = {
    "lia": model.lia,
    "olia": model.olia,
    "balia": model.balia,
    "ewtcp": model.ewtcp,
}
COUNTS = (1, 2, 3, 8, 32)
STATES = 200
SHARE = 0.002
"""Relative difference that fixed point may make in states that a network can have."""
STEP = 2.0**-28
"""And absolute, in packets per acknowledgement."""


def log_uniform(rng: random.Random, least: float, most: float) -> int:
    return round(math.exp(rng.uniform(math.log(least), math.log(most))))


def states(count: int, seed: int = 1) -> Iterator[list[CPath]]:
    """Windows of 1 to 20 000 packets, RTTs of 25 us to 4 s, some equal, some paths never yet in loss."""
    rng = random.Random(seed * 1000 + count)
    for _ in range(STATES):
        most = rng.choice((2, 10, 200, 20_000))
        rtts = [log_uniform(rng, 200, 32e6) for _ in range(rng.choice((1, count)))]
        yield [
            c_path(
                rng.randint(1, most),
                rtts[i % len(rtts)],
                rng.choice((0, log_uniform(rng, 1, 100_000), 500)),
            )
            for i in range(count)
        ]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", COUPLED)
def test_increase_is_the_papers(name: str, count: int) -> None:
    for paths in states(count):
        i = len(paths) // 2
        expected = COUPLED[name](model_paths(paths), i)
        found = per_ack(name, paths, i)
        described = [(p.window, p.rtt, p.between_losses) for p in paths]
        assert found == pytest.approx(expected, rel=SHARE, abs=STEP), (i, described)


@pytest.mark.parametrize("count", COUNTS)
def test_decrease_of_balia_is_the_papers(count: int) -> None:
    for paths in states(count):
        for i in range(min(count, 3)):
            expected = model.balia_after_loss(model_paths(paths), i)
            assert balia_after_loss(paths, i) == pytest.approx(expected, abs=1.01, rel=SHARE)


@pytest.mark.parametrize("name", COUPLED)
@pytest.mark.parametrize("window", (1, 2, 3, 10, 1000, 100_000))
def test_one_subflow_is_reno(name: str, window: int) -> None:
    alone = [c_path(window, 8 * 20_000, 77)]
    assert per_ack(name, alone, 0) == pytest.approx(1 / window, rel=1e-4, abs=STEP)


def test_one_subflow_of_balia_loses_as_reno() -> None:
    for window in (1, 2, 3, 4, 5, 10, 1001):
        assert balia_after_loss([c_path(window, 8000)], 0) == max(2, window - window // 2)


@pytest.mark.parametrize("name", ("lia", "balia", "ewtcp"))
def test_never_more_than_reno_and_never_negative(name: str) -> None:
    for count in COUNTS:
        for paths in states(count, seed=2):
            for i in range(count):
                assert 0 <= per_ack(name, paths, i) <= 1 / paths[i].window + STEP


@pytest.mark.parametrize("count", (2, 8, 32))
def test_equal_paths_of_lia_grow_together_as_one_reno(count: int) -> None:
    """Each adds 1/(n^2 w) per ACK: n of them add 1/(n w), which is reno's with n times the window."""
    paths = [c_path(10, 8 * 50_000) for _ in range(count)]
    assert per_ack("lia", paths, 0) == pytest.approx(1 / (count**2 * 10), rel=SHARE)


def test_olia_moves_the_window_to_the_better_path_at_no_total_cost() -> None:
    """alpha is +1/(2 n) on the path with few losses, -1/(2 n) on the one with the large window."""
    good, large = c_path(5, 8 * 10_000, 4000), c_path(20, 8 * 10_000, 100)
    paths = [good, large]
    alone = [c_path(good.window, good.rtt, 50), large]
    moved = [(per_ack("olia", paths, i) - per_ack("olia", alone, i)) * paths[i].window for i in range(2)]
    assert moved == pytest.approx([0.5, -0.5], rel=SHARE)


def test_lost_acks_of_precision_do_not_add_up() -> None:
    """Reno's increase, ACK by ACK, makes exactly one packet per window of ACKs, also at odd windows."""
    for window in (1, 2, 3, 7, 10, 333, 9_991):
        fixed = int(compiled().t_reno((CPath * 1)(c_path(window, 8000)), 1, 0))
        assert grown(window, fixed, window - 1) == window
        assert grown(window, fixed, window) == window + 1


def test_a_negative_increase_shrinks_the_window_to_one_packet_and_no_further() -> None:
    assert grown(3, -int(ONE_PACKET / 4), 4) == 2
    assert grown(3, -int(ONE_PACKET / 4), 100) == 1


@pytest.mark.parametrize("name", COUPLED)
def test_whatever_the_kernel_says_nothing_overflows(name: str) -> None:
    """Numbers no network has: windows of 0 and 2^32, RTTs of 0 and over an hour, terabytes between losses."""
    rng = random.Random(5)
    extremes = (0, 1, 7, 2**18, 2**31, 2**32 - 1)
    for count in (1, 2, 33, 64):
        for _ in range(STATES):
            paths = [
                c_path(rng.choice(extremes), rng.choice(extremes), rng.choice((0, 1, 2**40, 2**63)))
                for _ in range(count)
            ]
            expected = COUPLED[name](model_paths(paths), 0)
            assert per_ack(name, paths, 0) == pytest.approx(expected, rel=0.1, abs=2.0**-16)
            assert 2 <= balia_after_loss(paths, 0) < 2**18


def test_alpha_of_dctcp_is_the_rfcs() -> None:
    rng = random.Random(3)
    alpha, expected = 1 << 20, 1.0
    for _ in range(500):
        delivered = rng.choice((0, 1, 2, 10, 1000))
        marked = rng.randint(0, delivered)
        alpha = compiled().t_dctcp_alpha(alpha, delivered, marked)
        expected = model.dctcp_alpha(expected, delivered, marked)
        assert alpha / 2**20 == pytest.approx(expected, abs=1e-4)


def test_alpha_of_dctcp_falls_to_nothing_without_marks_and_rises_to_one_with() -> None:
    alpha = 1 << 20
    for _ in range(1000):
        alpha = compiled().t_dctcp_alpha(alpha, 100, 0)
    assert alpha / 2**20 < 1e-4
    for _ in range(1000):
        alpha = compiled().t_dctcp_alpha(alpha, 100, 100)
    assert alpha / 2**20 == pytest.approx(1.0, abs=1e-4)


def test_decrease_of_dctcp_is_the_rfcs() -> None:
    for window in (1, 2, 3, 10, 333, 100_000):
        for alpha in (0.0, 0.001, 0.1, 0.5, 1.0):
            expected = model.dctcp_after_marks(window, alpha)
            found = compiled().t_dctcp_after_marks(window, round(alpha * 2**20))
            assert found == pytest.approx(expected, abs=1)
