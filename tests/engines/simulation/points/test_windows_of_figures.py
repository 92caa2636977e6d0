"""A window in which flows still speed up casts doubt on goodput; the windows of figures do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from experiments.sigcomm11 import oversubscribed, several_nics, topologies
from harness.experiment import Figure
from model.reasons import DRIFT, GOODPUT
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec

TREE = RunSpec(
    LinkSpec(20.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(8, "lia"), WorkloadSpec("one_to_one"),
    engine="simulator",
)  # fmt: skip
FIGURES = {
    figure.name: figure
    for experiment in (topologies.EXPERIMENT, oversubscribed.EXPERIMENT, several_nics.EXPERIMENT)
    for figure in experiment.figures
}


def run(spec: RunSpec) -> RunResult:
    return SimulatorEngine().run(spec, Silent(), Path("/none"))


def test_slow_start_is_reported() -> None:
    slow = replace(TREE, link=replace(TREE.link, delay_us=20_000.0), warmup_s=0.0, seconds=1.0)
    (caution,) = run(slow).cautions
    assert (caution.kind, caution.doubts) == (DRIFT, (GOODPUT,))


def test_failing_links_and_sized_flows_have_no_halves() -> None:
    sized = replace(TREE, workload=WorkloadSpec("transfers", {"kb": 100}), warmup_s=0.0, seconds=1.0)
    assert run(sized).cautions == ()


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_windows_of_figures_are_long_enough_at_reduced_size(figure: Figure) -> None:
    warmup_s, seconds = figure.defaults["warmup_s"], figure.defaults["seconds"]
    assert warmup_s is not None
    assert seconds is not None
    at_rate = replace(TREE.link, rate_mbps=100.0)
    for subflows in (1, 8):
        transport = TransportSpec(subflows, "lia" if subflows > 1 else "reno")
        spec = replace(TREE, link=at_rate, transport=transport, warmup_s=warmup_s, seconds=seconds)
        assert run(spec).cautions == ()
