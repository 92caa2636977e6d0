"""The noise of a machine and the rates it allows: what counts as changed, and what a damaged file gives."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.machine import FLOOR_US, LATE_SHARES, MachineNoise, differs, frame_us, rate_by_noise
from model.reasons import SLOWEST

QUIET = MachineNoise(1.0, 20.0, 70.0, 300.0, 0.0, ((0, 70.0, 300.0), (1, 60.0, 200.0)))
NOISY = dataclasses.replace(QUIET, late_p99_us=4100.0, longest_us=9300.0)
MICROSECONDS = st.floats(0.0, 1e6)


def late(p99_us: float) -> MachineNoise:
    return dataclasses.replace(QUIET, late_p99_us=p99_us)


@given(MICROSECONDS, MICROSECONDS)
def test_what_differs_changed_by_a_factor_of_two_above_the_floor(one: float, other: float) -> None:
    changed = differs(late(one), late(other))
    assert changed == differs(late(other), late(one))
    if changed:
        assert max(one, other) >= 2 * min(one, other)
        assert max(one, other) >= 2 * FLOOR_US
    assert not differs(late(one), late(one))


def test_stolen_time_and_priority_count_too() -> None:
    assert QUIET.quiet and not NOISY.quiet and not dataclasses.replace(QUIET, steal_pct=5.0).quiet
    assert differs(QUIET, dataclasses.replace(QUIET, steal_pct=10.0))
    assert not differs(QUIET, dataclasses.replace(QUIET, steal_pct=3.0))
    assert differs(QUIET, dataclasses.replace(QUIET, realtime=False))


@pytest.mark.parametrize("noise", [QUIET, NOISY, dataclasses.replace(QUIET, realtime=False, by_cpu=())])
def test_it_survives_its_json(noise: MachineNoise) -> None:
    assert MachineNoise.from_json(json.loads(json.dumps(noise.to_json()))) == noise


@pytest.mark.parametrize(
    "damage",
    [{"late_p99_us": "much"}, {"late_p99_us": -1}, {"by_cpu": 3}, {"by_cpu": [[0, 1]]}, {"seconds": None},
     {"steal_pct": float("nan")}],
)  # fmt: skip
def test_a_damaged_record_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"noise|could not|unpack|values"):
        MachineNoise.from_json({**QUIET.to_json(), **damage})


@pytest.mark.parametrize("nothing", [None, 7, "quiet", {}])
def test_something_else_is_refused(nothing: object) -> None:
    with pytest.raises(ValueError, match="noise"):
        MachineNoise.from_json(nothing)


def test_all_busy_time_but_the_idle_machines_is_the_frames() -> None:
    metrics = {"cpu_busy_pct": 45.0, "packet_hops_per_s": 100_000.0}
    assert frame_us(metrics, cpus=2, idle_pct=5.0, ports=2.0) == pytest.approx(0.4 * 2 * 1e6 / 50_000)
    assert frame_us(metrics, cpus=2, idle_pct=50.0, ports=2.0) == 0
    with pytest.raises(ValueError, match="the run carried no frames"):
        frame_us({**metrics, "packet_hops_per_s": 0.0}, 2, 5.0, 2.0)


def test_noise_allows_what_keeps_it_small_beside_a_full_queue() -> None:
    noisy = dataclasses.replace(QUIET, late_p99_us=4000.0)
    full_queue_us = 100 * 12_112 / rate_by_noise(noisy)
    assert 4000 / full_queue_us == pytest.approx(LATE_SHARES[SLOWEST])
    louder = dataclasses.replace(QUIET, late_p99_us=8000.0)
    assert rate_by_noise(louder) == pytest.approx(rate_by_noise(noisy) / 2)
    assert rate_by_noise(QUIET) > 100, "more than calibration tries"
