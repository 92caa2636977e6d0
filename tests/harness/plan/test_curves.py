"""What a curve of a figure pins, what options set beside it, and a figure's axes beside the user's."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import UsageError
from harness.options.options import layer_of, sweeps_of
from harness.plan.sweeps import PLAIN_TCP, Curves, fat_trees, points_on
from model.spec import RunSpec, Settings, StackSpec
from tests.support.options import options_typed

FIGURE: Settings = {
    "k": (4,), "workload": ("one_to_one",), "transport.subflows": (1, 8), "engine": ("simulator",),
}  # fmt: skip


def points_of(curves: Curves, defaults: Settings = FIGURE, **given: Any) -> list[RunSpec]:
    points = points_on(fat_trees, curves)
    sweeps = sweeps_of(options_typed(**given), defaults)
    return [spec for sweep in sweeps for spec in points(sweep, lambda _network: 10.0)]


def test_a_curve_goes_before_options_and_options_set_what_it_leaves_open() -> None:
    curves = (PLAIN_TCP, {"routing": "ecmp", "transport.subflows": (2, 4)}, {"link.queue_pkts": 20})
    found = points_of(curves, routing="scatter", queue="50", cc="olia", subflows="3")
    assert [(s.routing, s.transport.subflows, s.transport.cc, s.link.queue_pkts) for s in found] == [
        ("scatter", 1, "reno", 50),
        ("ecmp", 2, "olia", 50),
        ("ecmp", 4, "olia", 50),
        ("scatter", 3, "olia", 20),
    ]
    assert all(spec.link.nic_queue_pkts == spec.link.queue_pkts for spec in found), "both ends of a link"


def test_fields_of_the_stack_and_sysctls_that_somebody_chose_join_those_of_a_curve() -> None:
    slow = StackSpec(min_rto_ms=5.0, delayed_ack_ms=0.0)
    (spec,) = points_of(({"stack": slow},), subflows="1", stack=("min_rto_ms=7",))
    assert (spec.stack.min_rto_ms, spec.stack.delayed_ack_ms) == (7.0, 0.0)
    curves: Curves = ({"transport.sysctls": {"net.a": "1"}, "stack": slow},)
    (spec,) = points_of(curves, subflows="1", engine="mininet", rate="10", sysctl=("net.b=2",))
    assert spec.transport.sysctls == {"net.a": "1", "net.b": "2"}
    assert spec.stack == StackSpec(), "real hosts have stacks of their own"


def test_a_curve_of_an_engine_has_points_in_this_one_only() -> None:
    curves = ({"engine": "ideal"}, {"engine": "simulator", "link.ecn_pkts": 20})
    found = points_of(curves, {**FIGURE, "engine": ("simulator", "ideal")}, subflows="1")
    assert [(spec.engine, spec.link.ecn_pkts) for spec in found] == [("ideal", 0), ("simulator", 20)]


def test_a_figures_axes_are_multiplied_and_the_users_value_replaces_one() -> None:
    defaults = {**FIGURE, "link.queue_pkts": (20, 50), "stack.min_rto_ms": (1.0, 10.0)}

    def axes(**given: Any) -> list[tuple[int, float]]:
        found = points_of(({},), defaults, subflows="1", **given)
        return [(spec.link.queue_pkts, spec.stack.min_rto_ms) for spec in found]

    assert axes() == [(20, 1.0), (20, 10.0), (50, 1.0), (50, 10.0)]
    assert axes(queue="30") == [(30, 1.0), (30, 10.0)]
    assert axes(queue="30,40", stack=("min_rto_ms=2",)) == [(30, 2.0), (40, 2.0)]
    assert axes(stack=("delayed_ack_ms=0",)) == axes()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"link.queue": 1}, "did you mean link.queue_pkts"),
        ({"stack.min_rto": (1, 2)}, "stack.min_rto"),
        ({"stack": {"min_rto": 1}}, "did you mean stack.min_rto_ms"),
        ({"smoke.warmup": 1}, "smoke.warmup: no option sets such a field"),
    ],
)
def test_a_field_that_no_option_sets_is_no_pin_and_no_axis(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        layer_of({**FIGURE, **fields})


def test_a_list_is_an_axis_also_of_fields_whose_values_are_several_parts() -> None:
    stacks = [{"min_rto_ms": 5.0}, {"min_rto_ms": 7.0, "sack": False}]
    found = points_of(({},), {**FIGURE, "stack": stacks}, subflows="1")
    assert [(spec.stack.min_rto_ms, spec.stack.sack) for spec in found] == [(5.0, True), (7.0, False)]
