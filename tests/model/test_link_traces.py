"""Traces of links: the made-up cellular one, user_files, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import topos
from common.errors import UsageError
from engines.simulation.engine import SimulatorEngine
from fabric.plan import FRAME_BITS
from harness.options import user_files
from model.links import LTE_MEAN_MBPS, LinkTrace, link_trace, lte, packed, trace_words
from model.network_plan import plan_for, port_names
from model.spec import LinkEvent, LinkSpec, RunSpec, TopologySpec, WorkloadSpec

OPTION = "--link-trace"


def parsed(tmp_path: Path, text: str) -> LinkTrace:
    file = tmp_path / "trace"
    file.write_text(text)
    return link_trace(user_files.link_trace_of(OPTION, f"@{file}"))


@pytest.mark.parametrize("seed", range(1, 5))
def test_the_cellular_trace_is_as_described(seed: int) -> None:
    """Published: 5.96 Mb/s; seconds of 2.4, 5.8 and 10.7 Mb/s at the 10th, 50th and 90th percentile; outages
    of up to 1.7 s. A quarter is allowed for the draw of 140 s."""
    trace = lte(seed)
    assert trace.mean_mbps == pytest.approx(LTE_MEAN_MBPS, abs=0.01)
    frames = trace.per_ms[: len(trace.per_ms) // 1000 * 1000].reshape(-1, 1000).sum(axis=1)
    second_mbps = frames * (FRAME_BITS / 1e6)
    assert np.percentile(second_mbps, [10, 50, 90]) == pytest.approx([2.4, 5.8, 10.7], rel=0.25)
    gaps_ms = np.diff(trace.opportunities_ps()) / 1e9
    assert 500 < gaps_ms.max() < 1800


def test_seeds_draw_other_traces_and_the_same_one_again() -> None:
    assert np.array_equal(lte(1).per_ms, lte(1).per_ms)
    assert not np.array_equal(lte(1).per_ms, lte(2).per_ms)
    assert lte(1).per_ms[:140].tolist() == link_trace("lte:1").per_ms[:140].tolist()


def test_a_file_becomes_part_of_the_spec(tmp_path: Path) -> None:
    trace = parsed(tmp_path, "# outdoors\n0\n1\n1\n4  # late\n")
    assert trace.per_ms.tolist() == [3, 0, 0, 1]
    assert (trace.opportunities_ps() / 1e9).tolist() == [1, 1, 1, 4]
    assert trace.mean_mbps == pytest.approx(4 * FRAME_BITS / 4000)
    assert trace_words(packed(trace)) == "a trace of 0.004 s, 12.1 Mb/s"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("1\ntwo\n", "line 2: 'two' is not a time"),
        ("5\n4\n", r"line 2: times must not fall from line to line \(5, then 4\)"),
        ("1.5\n", "line 1: '1.5' is not a time"),
        ("# nothing\n", "one per line"),
        ("0\n", "after 0 ms"),
        ("3600001\n", "to 3600000"),
    ],
)
def test_errors_in_files_have_line_numbers(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        parsed(tmp_path, text)


@pytest.mark.parametrize(
    "text", ["", "lte:", "lte:x", "lte:-1", "3g:1", "inline:5:x", "inline:0:", "inline:2:00000"]
)
def test_what_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        user_files.link_trace_of(OPTION, text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no-such: cannot be read: No such file"):
        user_files.link_trace_of(OPTION, f"@{tmp_path}/no-such")


DUMBBELL = RunSpec(
    LinkSpec(100.0, 5000.0, trace="lte:1"),
    TopologySpec("dumbbell", {"n": 1}),
    workload=WorkloadSpec("against_tcp"),
    engine="simulator",
)


def test_only_links_between_switches_follow_it() -> None:
    topology = topos.build("dumbbell", {"n": 1})
    plan = plan_for(DUMBBELL, topology)
    layers = [layers for _, _, layers in port_names(topology)]
    assert [bool(one) for one in plan.traced] == ["host" not in each for each in layers]
    mean_bps = link_trace("lte:1").mean_mbps * 1e6
    assert plan.rate_bps[np.flatnonzero(plan.traced)] == pytest.approx(mean_bps, abs=1)


def test_what_cannot_follow_one_is_refused() -> None:
    engine = SimulatorEngine()
    engine.check(DUMBBELL)
    star = dataclasses.replace(
        DUMBBELL, topology=TopologySpec("star", {"n": 4}), workload=WorkloadSpec("one_to_one")
    )
    with pytest.raises(UsageError, match="choose a network that has some"):
        engine.check(star)
    topology = topos.build("dumbbell", {"n": 1})
    between = next(link for link in topology.links if not {link.a, link.b} & set(topology.hosts))
    names = (topology.nodes[between.a].name, topology.nodes[between.b].name)
    with pytest.raises(UsageError, match="can be cut but not slowed"):
        engine.check(dataclasses.replace(DUMBBELL, events=(LinkEvent(1.0, *names, 0.5),)))
