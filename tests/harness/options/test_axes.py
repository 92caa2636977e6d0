"""Options with several values: a sweep is the product of its axes, on command lines and in Python."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from common.errors import UsageError
from experiments.registry import EXPERIMENTS
from harness import labels
from harness.options.options import several
from harness.plan import session
from model.links import link_trace
from model.spec import RunSpec
from tests.support.options import options_typed

BASE: dict[str, Any] = {"engine": "simulator", "k": "4", "subflows": "1,2", "rate": "10"}


def specs(**texts: Any) -> list[RunSpec]:
    made = session.make_plan(EXPERIMENTS["cs244-one-to-one"], options_typed(**{**BASE, **texts}))
    return [job.spec for job in made.jobs if job.spec.workload.matrix != "reference"]


def test_a_sweep_is_the_product_of_its_axes() -> None:
    of = specs(queue="20,50", delay="0, 100", stack=("min_rto_ms=10,200", "sack=off"), rate="10,20")
    found = [
        (s.link.queue_pkts, s.link.delay_us, s.stack.min_rto_ms, s.link.rate_mbps, s.transport.subflows)
        for s in of
    ]
    assert sorted(found) == sorted(itertools.product((20, 50), (0, 100), (10, 200), (10, 20), (1, 2)))
    assert not any(spec.stack.sack for spec in of)
    assert all(spec.link.nic_queue_pkts == spec.link.queue_pkts for spec in of)


def test_one_value_or_the_same_twice_is_no_axis() -> None:
    assert specs(queue="20,20") == specs(queue="20") == specs(queue=[20])
    assert several(options_typed(queue="20", stack=("min_rto_ms=10",))) == {}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"queue": "20,"}, "--queue 20,: a value is missing"),
        ({"stack": ("min_rto_ms=10,",)}, "--stack min_rto_ms=10,: a value is missing"),
        ({"queue": "20,2000000"}, "--queue 2000000: must be at most"),
        ({"stack": ("min_rto_ms=10,soon",)}, "min_rto_ms is a number"),
        ({"queue": "20,50", "ecn": "30"}, "a queue of 20 packets drops before it marks any"),
    ],
)
def test_each_value_of_an_axis_is_checked(texts: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        specs(**texts)


def test_commas_of_a_path_or_a_command_divide_nothing(tmp_path: Path) -> None:
    (tmp_path / "a,b.down").write_text("1\n2\n")
    (traced,) = specs(link_trace=f"@{tmp_path}/a,b.down", subflows="1")
    assert link_trace(traced.link.trace).per_ms.tolist() == [1, 1]
    assert options_typed(controller="cmd:'mine --ports 1,2'")["openflow.controller"].endswith("1,2'")
    assert several(options_typed(link_trace="lte:1,lte:2")) == {"link.trace": ("lte:1", "lte:2")}
    with pytest.raises(UsageError, match=r"trace file .*: cannot be read"):
        specs(link_trace=f"@{tmp_path}/no,file.down")


def test_commas_between_the_settings_of_a_queue_divide_nothing() -> None:
    queues = ("fifo", "codel:target_us=1000,ecn=1", "priority")
    of = specs(discipline=",".join(queues), subflows="1")
    assert sorted(spec.link.discipline for spec in of) == sorted(queues)
    assert len({labels.beside(spec, labels.shared(of)) for spec in of}) == len(queues)


def test_names_of_points_have_every_axis_that_varies_and_no_other_field() -> None:
    of = specs(queue="20,50", stack=("min_rto_ms=10,200",), delay="100")
    alike = labels.shared(of)
    assert set(alike.axes) == {"link.queue_pkts", "stack.min_rto_ms"}
    assert len({labels.beside(spec, alike) for spec in of}) == len(of)
    assert len({labels.label(spec, alike.axes) for spec in of}) == len(of)
    assert labels.shared(specs()).axes == ()


def test_titles_have_the_value_of_every_axis_also_a_usual_one() -> None:
    of = specs(queue="20,100", stack=("min_rto_ms=10,200",), subflows="1")
    axes = labels.shared(of).axes
    titles = [labels.setting_title([spec], axes=axes) for spec in of]
    assert len(set(titles)) == len(titles) == 4
    assert all(
        f"{spec.link.queue_pkts}-packet queues" in title for spec, title in zip(of, titles, strict=True)
    )
    assert all(f"min_rto_ms={spec.stack.min_rto_ms:g}" in t for spec, t in zip(of, titles, strict=True))
    assert not any("min_rto_ms" in labels.setting_title([spec]) for spec in specs(queue="20,50"))


def test_a_plan_says_what_no_name_of_a_point_does() -> None:
    """Axes are in the names of points; what all of them have instead of the figure's is said once."""
    texts = {"queue": "20,50", "ecn": "10", "delay": "0", "stack": ("min_rto_ms=10", "sack=on")}
    made = session.make_plan(EXPERIMENTS["cs244-one-to-one"], options_typed(**BASE, **texts))
    assert made.overrides == ("ECN from 10 packets", "min_rto_ms=10")
    assert made.setting_lines()[-1] == "not the figure's: ECN from 10 packets, min_rto_ms=10"
    assert session.make_plan(EXPERIMENTS["cs244-one-to-one"], options_typed(**BASE)).overrides == ()


def test_points_of_one_arm_are_told_apart_by_the_axis_alone() -> None:
    given = options_typed(engine="simulator", delay="0,100", seeds="1")
    of = [job.spec for job in session.make_plan(EXPERIMENTS["pfabric-parts"], given).jobs]
    alike = labels.shared(of)
    assert "link.delay_us" in alike.axes
    assert not [path for path in alike.axes if path.startswith("stack.")]  # in which arms differ
    assert len({labels.beside(spec, alike) for spec in of}) == len(of)
