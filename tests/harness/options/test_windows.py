"""Warm-up and window hold as many packets and round trips at every rate; chosen durations stay."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.fake import FakeEngine
from experiments.registry import EXPERIMENTS
from fabric.plan import FRAME_BITS
from harness.options.options import UserOptions, resolve
from harness.options.rates import AS_CHOSEN, MAX_S, RateChoice, Window, delay_s
from harness.plan import session
from harness.plan.machines import TO_BE_MEASURED, ThisMachine
from model.spec import LinkSpec, RunSpec, TopologySpec

BOTH = Window(warmup=True, seconds=True)
TREE = TopologySpec("fat_tree", {"k": 4})


def point(rate_mbps: float, **link: Any) -> RunSpec:
    return RunSpec(LinkSpec(rate_mbps, **link), TREE, warmup_s=20.0, seconds=40.0)


def durations(spec: RunSpec, window: Window = BOTH) -> tuple[float, float]:
    fitted = window.of(spec)
    assert dataclasses.replace(fitted, warmup_s=spec.warmup_s, seconds=spec.seconds) == spec
    return fitted.warmup_s, fitted.seconds


@pytest.mark.parametrize("rate_mbps", [10.0, 50.0, 1000.0])
def test_nothing_changes_from_10_mbps_on(rate_mbps: float) -> None:
    assert durations(point(rate_mbps)) == (20.0, 40.0)


def test_slower_links_are_watched_for_as_many_packets() -> None:
    assert durations(point(5.0)) == (40.0, 60.0)
    assert durations(point(2.0)) == (100.0, 150.0)
    assert durations(point(1.0)) == (200.0, 300.0)
    assert durations(point(1.0), AS_CHOSEN) == (20.0, 40.0)
    assert durations(point(1.0), Window(warmup=True)) == (200.0, 40.0)
    assert durations(point(1.0), Window(seconds=True)) == (20.0, 300.0)


def test_long_queues_and_paths_are_watched_for_as_many_round_trips() -> None:
    full_s = 1000 * FRAME_BITS / 1e7
    warmup_s, seconds = durations(point(10.0, queue_pkts=1000))
    assert warmup_s / full_s == pytest.approx(160, rel=0.01)
    assert seconds == pytest.approx(1.5 * warmup_s, abs=1)
    assert durations(point(10.0, queue_bytes=1_514_000)) == (warmup_s, seconds)
    assert delay_s(point(10.0, queue_pkts=0, delay_us=50_000.0)) == pytest.approx(6 * 2 * 0.05)
    assert durations(point(10.0, queue_pkts=0, delay_us=50_000.0)) == (96.0, 144.0)
    assert durations(point(10.0, queue_pkts=0)) == (20.0, 40.0), "a queue without bound has no full length"


def test_five_minutes_are_the_most_and_a_cut_is_reported() -> None:
    slow = point(0.8)
    assert durations(slow) == (250.0, MAX_S)
    (line,) = BOTH.capped([slow, slow, point(10.0)])
    assert line == (
        "links of 0.8 Mb/s with 100-packet queues need a window of 375 s, cut at 300 s; choose a higher "
        "--rate, or give --seconds"
    )
    assert Window(warmup=True).capped([slow]) == [], "the window was given by hand"
    (both,) = BOTH.capped([point(0.4)])
    assert "need 500 s of warm-up and a window of 750 s, cut at 300 s" in both
    assert "give --warmup and --seconds" in both
    assert AS_CHOSEN.capped([slow]) == []


@given(st.floats(0.01, 1000.0), st.integers(0, 2000), st.sampled_from([0.0, 10.0, 1000.0]))
def test_no_duration_becomes_shorter_or_longer_than_the_most(rate: float, queue: int, delay: float) -> None:
    warmup_s, seconds = durations(point(rate, queue_pkts=queue, delay_us=delay))
    assert 20.0 <= warmup_s <= MAX_S
    assert 40.0 <= seconds <= MAX_S


def test_the_farthest_host_ends_the_longest_path() -> None:
    star = dataclasses.replace(
        point(10.0, queue_pkts=0, delay_us=1.0), topology=TopologySpec("star", {"n": 9})
    )
    assert delay_s(star) == pytest.approx(2 * 2e-6)
    lanes = TopologySpec("dumbbell", {"n": 2, "lanes": 3})
    assert delay_s(dataclasses.replace(star, topology=lanes)) == pytest.approx(3 * 2e-6)


class TestPlans:
    """What `refabric plan` says and `refabric run` does."""

    def durations(self, name: str = "cs244-one-to-one", **typed: Any) -> set[tuple[float, float]]:
        plan = session.make_plan(EXPERIMENTS[name], UserOptions.of(**typed), FakeEngine(name="mininet"))
        return {(spec.warmup_s, spec.seconds) for part in plan.figures for spec in part.specs}

    def test_the_rate_decides_unless_an_option_does(self) -> None:
        assert self.durations(rate="10") == {(20.0, 40.0)}
        assert self.durations(rate="2") == {(100.0, 150.0)}
        assert self.durations(rate="2", profile="paper") == {(100.0, 150.0)}
        assert self.durations(rate="2", seconds=3.0) == {(100.0, 3.0)}
        assert self.durations(rate="2", seconds=3.0, warmup=1.0) == {(1.0, 3.0)}
        assert self.durations(rate="2", profile="smoke") == {(20.0, 25.0)}, "smoke takes 3.5 minutes"

    def test_what_a_figure_pins_it_keeps(self) -> None:
        assert self.durations("cs244-fig9") == {(0.0, 40.0)}
        assert self.durations("cs244-fig11") == {(200.0, 300.0)}, "1 Mb/s is what it shows, settled"
        assert self.durations("cs244-fig11", rate="2") == {(100.0, 150.0)}

    def test_virtual_time_keeps_its_durations(self) -> None:
        assert self.durations(engine="simulator", rate="1") == {(20.0, 40.0)}
        assert self.durations(engine="simulator", profile="smoke") == {(3.0, 8.0)}

    def test_a_plan_takes_the_time_that_its_points_do(self) -> None:
        plans = [
            session.make_plan(EXPERIMENTS["cs244-one-to-one"], given, FakeEngine(name="mininet"))
            for given in (UserOptions.of(rate="5"), UserOptions.of(rate="2"))
        ]
        quick, slow = ({job.spec.seconds for job in plan.jobs} for plan in plans)
        assert max(slow) > max(quick)

    def test_a_rate_not_yet_known_is_taken_for_a_usual_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        unknown = RateChoice(None, TO_BE_MEASURED)
        monkeypatch.setattr(ThisMachine, "known_rate", lambda *_: unknown)
        assert self.durations(k="4") == {(20.0, 40.0)}

    def test_the_placeholder_of_a_rate_is_never_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ThisMachine, "known_rate", lambda *_: RateChoice(None, TO_BE_MEASURED))
        given = UserOptions.of(queue=2000)
        plan = session.make_plan(EXPERIMENTS["cs244-one-to-one"], given, FakeEngine(name="mininet"))
        assert plan.left_out() == []


@pytest.mark.parametrize(
    ("engines", "grow"),
    [("mininet", True), ("mininet,simulator", True), ("simulator", False), ("linux,simulator", False)],
)
def test_durations_grow_where_a_point_runs_in_real_time(engines: str, grow: bool) -> None:
    figure = EXPERIMENTS["cs244-one-to-one"].figures[0]
    options = resolve(UserOptions.of(engine=engines, rate="1"), figure.defaults)
    assert (options.window != AS_CHOSEN) == grow
