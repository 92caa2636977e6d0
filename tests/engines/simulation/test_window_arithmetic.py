"""The simulator's congestion controls against the papers' formulas, written a second time in Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric._core import (
    congestion_controls,
    dctcp_after_marks,
    dctcp_alpha,
    window_after_loss,
    window_increase,
)
from model.congestion import CONGESTION_CONTROLS, core_name
from tests.support import coupled_model as model

Formula = Callable[[Sequence[model.Path], int], float]
INCREASES: dict[str, Formula] = {
    "reno": model.reno,
    "dctcp": model.reno,
    "ewtcp": model.ewtcp,
    "coupled": model.coupled,
    "lia": model.lia,
    "olia": model.olia,
    "balia": model.balia,
    "mintcp": model.reno,
}
AFTER_LOSS: dict[str, Formula] = {
    "reno": model.half,
    "dctcp": model.half,
    "ewtcp": model.half,
    "coupled": model.coupled_after_loss,
    "lia": model.half,
    "olia": model.half,
    "balia": model.balia_after_loss,
    "mintcp": model.half,
    "cubic": lambda paths, i: max(2.0, 0.7 * paths[i].window),
}
BY_TIME = {"cubic"}
"""Controls whose increase depends on time (congestion/test_cubic.py)."""
CONSTANT = {"ccp", "linerate"}
"""Controls whose window neither grows nor shrinks."""
windows = st.floats(1, 1e5) | st.sampled_from([1.0, 2.0, 10.0])
rtts = st.floats(1e-5, 10) | st.sampled_from([0.001, 0.1])
packets = st.integers(0, 10**6).map(float)
path_states = st.tuples(windows, rtts, packets, packets)
PathState = tuple[float, float, float, float]
"""As fabric._core has it."""
connections = st.sampled_from([1, 2, 8, 32]).flatmap(lambda n: st.lists(path_states, min_size=n, max_size=n))


def as_model(paths: Sequence[PathState]) -> list[model.Path]:
    return [model.Path(window, rtt_s, max(since, between)) for window, rtt_s, since, between in paths]


def test_both_know_the_same_names() -> None:
    simulated = {core_name(name) for name, cc in CONGESTION_CONTROLS.items() if cc.simulated}
    assert (
        set(congestion_controls())
        == set(INCREASES) | BY_TIME | CONSTANT
        == set(AFTER_LOSS) | CONSTANT
        == simulated
    )


@pytest.mark.parametrize("name", sorted(CONSTANT))
@given(window=windows, rtt=rtts)
def test_a_constant_window_stays(name: str, window: float, rtt: float) -> None:
    assert window_increase(name, [(window, rtt, 5.0, 9.0)], 0) == 0
    assert window_after_loss(name, [(window, rtt, 5.0, 9.0)], 0) == window


@pytest.mark.parametrize("name", INCREASES)
@settings(max_examples=40)
@given(paths=connections)
def test_increase_is_the_papers(name: str, paths: list[PathState]) -> None:
    for i in {0, len(paths) // 2, len(paths) - 1}:
        expected = INCREASES[name](as_model(paths), i)
        assert window_increase(name, paths, i) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", AFTER_LOSS)
@settings(max_examples=40)
@given(paths=connections)
def test_what_a_loss_leaves_is_the_papers(name: str, paths: list[PathState]) -> None:
    for i in {0, len(paths) - 1}:
        expected = AFTER_LOSS[name](as_model(paths), i)
        assert window_after_loss(name, paths, i) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", sorted(set(INCREASES) - {"ewtcp"}))
@given(window=windows, rtt=rtts)
def test_one_subflow_is_reno(name: str, window: float, rtt: float) -> None:
    assert window_increase(name, [(window, rtt, 5.0, 9.0)], 0) == pytest.approx(1 / window)
    assert window_after_loss(name, [(window, rtt, 5.0, 9.0)], 0) == pytest.approx(max(2, window / 2))


@pytest.mark.parametrize("name", INCREASES)
def test_before_the_first_round_trip_a_window_grows_as_renos(name: str) -> None:
    paths = [(10.0, 0.0, 3.0, 0.0), (7.0, 0.1, 3.0, 0.0)]
    for i in (0, 1):
        grown = window_increase(name, paths, i)
        assert math.isfinite(grown)
        assert 0 < grown <= 1 / paths[i][0] * 1.000001
    if name in {"lia", "olia", "balia"}:
        assert window_increase(name, paths, 0) == 1 / 10
        assert window_increase(name, paths, 1) == pytest.approx(1 / 7)


def test_olia_takes_from_the_large_what_it_gives_the_good() -> None:
    good, large = (5.0, 0.1, 4000.0, 0.0), (20.0, 0.1, 100.0, 0.0)
    alone = [(5.0, 0.1, 50.0, 0.0), large]
    moved = [
        (window_increase("olia", [good, large], i) - window_increase("olia", alone, i)) * (5, 20)[i]
        for i in range(2)
    ]
    assert moved == pytest.approx([0.5, -0.5])
    far = (20.0, 1.0, 100.0, 0.0)
    assert window_increase("olia", [good, far], 1) < 0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 1e5))
def test_dctcp_is_the_rfcs(alpha: float, share: float, window: float) -> None:
    assert dctcp_alpha(alpha, share) == pytest.approx(alpha * 15 / 16 + share / 16, abs=1e-12)
    assert dctcp_after_marks(window, alpha) == pytest.approx(model.dctcp_after_marks(window, alpha))


def test_an_unknown_name_or_path_is_refused() -> None:
    with pytest.raises(ValueError, match="no congestion control 'bbr'"):
        window_increase("bbr", [(1.0, 1.0, 0.0, 0.0)], 0)
    with pytest.raises(IndexError, match="no path of that number"):
        window_after_loss("reno", [], 0)
