"""Flow sizes: the inverse of their distribution, their mean, their text."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import UsageError
from workloads.sizes import DISTRIBUTIONS, parse

NAMES = [*DISTRIBUTIONS, "fixed-70000", "uniform-1000-9000"]


@pytest.mark.parametrize("name", NAMES)
def test_points_rise_from_0_to_1(name: str) -> None:
    points = parse(name).points
    assert points[0][1] == 0
    assert points[-1][1] == 1
    assert list(points) == sorted(points)


@pytest.mark.parametrize("name", NAMES)
def test_the_inverse_passes_through_the_points(name: str) -> None:
    sizes = parse(name)
    for _, share in sizes.points[1:]:
        # Where the distribution jumps, the inverse is one of the sizes between which it does.
        assert sizes.at(share) in {size for size, other in sizes.points if other == share}


@pytest.mark.parametrize("name", NAMES)
@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True))
def test_the_inverse_never_falls(name: str, a: float, b: float) -> None:
    sizes = parse(name)
    assert sizes.at(min(a, b)) <= sizes.at(max(a, b))


@pytest.mark.parametrize("name", NAMES)
def test_the_mean_is_what_the_inverse_integrates_to(name: str) -> None:
    sizes, steps = parse(name), 100_000
    mean = statistics.fmean(sizes.at((i + 0.5) / steps) for i in range(steps))
    assert mean == pytest.approx(sizes.mean_bytes, rel=1e-4)


def test_means_are_those_of_the_public_simulations() -> None:
    """1138 packets and 5117 are the means that scripts of pFabric's successors state; the sizes of web search
    in bytes (10 kB, 20 kB, ... 30 MB) have a mean of 1 711 250 bytes, which are 1141 packets of 1500."""
    assert parse("websearch").mean_bytes / 1460 == pytest.approx(1138, rel=0.003)
    assert parse("websearch").mean_bytes / 1460 == pytest.approx(1_711_250 / 1500, rel=0.0003)
    assert round(parse("datamining").mean_bytes / 1460) == 5117


def test_means_of_the_steps_are_those_of_the_reproduction() -> None:
    """1620 and 9500 packets in the code of the CS244 2017 reproduction, rounded."""
    assert parse("websearch-steps").mean_bytes / 1460 == pytest.approx(1620, rel=0.005)
    assert parse("datamining-steps").mean_bytes / 1460 == pytest.approx(9500, rel=0.005)


def test_web_search_is_many_short_flows_and_most_bytes_in_long_ones() -> None:
    rng = random.Random(5)
    drawn = sorted(parse("websearch").draw(rng) for _ in range(20_000))
    assert sum(size < 100_000 for size in drawn) / len(drawn) == pytest.approx(0.55, abs=0.02)
    large = sum(size for size in drawn if size > 1_000_000)
    assert large / sum(drawn) > 0.9


def test_texts() -> None:
    assert parse("fixed-70000").at(0.3) == 70_000
    assert parse("fixed-70000").mean_bytes == 70_000
    assert parse("uniform-1000-9000").mean_bytes == 5000


@pytest.mark.parametrize(
    "text", ["", "web", "fixed", "fixed-0", "fixed--3", "uniform-5", "uniform-9-3", "fixed-1-2"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="flow sizes"):
        parse(text)
