"""The controller of an IMS: what each policy sees, and when the scaler acts."""

from __future__ import annotations

import pytest

from controllers.ims_scaling import (
    ADD,
    DRAIN,
    IDLE_S,
    NONE,
    POLICIES,
    SETTLE_S,
    FunctionSignals,
    InstanceSignals,
    Scaler,
    ScalingPolicy,
)


def function(count: int = 1, *, setup_ms: float | None = 30.0, **signals: float) -> FunctionSignals:
    usual: dict[str, float] = {"queue": 0.0, "drops": 0, "cpu": 0.1, "busy": 0.5}
    instance = InstanceSignals(**{**usual, **signals})  # type: ignore[arg-type]
    return FunctionSignals((instance,) * count, setup_ms)


FULL_S = function(queue=1.0, drops=50, cpu=0.1, busy=1.0, setup_ms=900.0)
"""An S-CSCF whose workers all wait for user data: it uses no more CPU than a healthy one."""
FULL_P = function(queue=1.0, drops=50, cpu=1.0, busy=1.0, setup_ms=900.0)


@pytest.mark.parametrize(
    ("name", "sees_s", "sees_p"),
    [("static", False, False), ("queue", True, True), ("cpu", False, True), ("latency", True, True)],
)
def test_what_each_policy_sees(name: str, sees_s: bool, sees_p: bool) -> None:
    policy = POLICIES[name]
    assert policy.overloaded(FULL_S) is sees_s
    assert policy.overloaded(FULL_P) is sees_p
    assert not policy.overloaded(function())


def test_latency_blames_the_function_with_the_full_buffer() -> None:
    assert not POLICIES["latency"].overloaded(function(setup_ms=900.0))
    assert POLICIES["latency"].overloaded(function(queue=0.5, setup_ms=None))


def test_an_instance_is_spared_only_if_the_others_carry_its_load() -> None:
    queue = POLICIES["queue"]
    assert not queue.idle(function(1, busy=0.0))
    assert queue.idle(function(2, busy=0.3)) and not queue.idle(function(2, busy=0.4))
    assert queue.idle(function(3, busy=0.4)) and not queue.idle(function(3, busy=0.4, queue=0.1))


def ticks(policy: ScalingPolicy, function: FunctionSignals, seconds: int, **scaler: int) -> list[str]:
    of = Scaler(policy, **{"most": 3, **scaler})
    return [of.tick(function) for _ in range(seconds)]


def test_an_overloaded_function_grows_until_its_most() -> None:
    steps = ticks(POLICIES["queue"], FULL_P, 8)
    assert steps[0] == ADD
    assert steps[1 : 1 + SETTLE_S] == [NONE] * SETTLE_S
    assert steps[1 + SETTLE_S] == ADD
    assert set(ticks(POLICIES["queue"], FULL_P, 20, most=1)) == {NONE}


def test_a_late_controller_waits_for_seconds_in_a_row() -> None:
    assert ticks(POLICIES["queue"], FULL_P, 6, react_s=5) == [
        *[NONE] * 4,
        ADD,
        NONE,
    ]
    scaler = Scaler(POLICIES["queue"], 3, react_s=3)
    mixed = [scaler.tick(one) for one in (FULL_P, FULL_P, function(), FULL_P, FULL_P)]
    assert set(mixed) == {NONE}


def test_an_idle_function_shrinks_slowly_and_keeps_one() -> None:
    steps = ticks(POLICIES["queue"], function(2, busy=0.1), IDLE_S + 1)
    assert steps.index(DRAIN) == IDLE_S - 1 and steps.count(DRAIN) == 1
    assert set(ticks(POLICIES["queue"], function(1, busy=0.0), 3 * IDLE_S)) == {NONE}
