"""All figures of all experiments: distinct points that their engines take, and statements about them."""

from __future__ import annotations

import pytest

from engines.registry import VIRTUAL_TIME, make
from experiments.registry import EXPERIMENTS
from harness.experiment import Figure
from harness.labels import workload_label
from plots.registry import CHARTS
from tests.support.figures import points_of

FIGURES = list({figure.name: figure for each in EXPERIMENTS.values() for figure in each.figures}.values())
WITHOUT_SOME_NETWORKS = {"topologies-switched"}
"""Figures that share the statements of a twin, which has further networks."""


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_points_are_distinct_and_every_statement_is_about_one_that_runs(figure: Figure) -> None:
    simulated = points_of(figure)
    emulated = points_of(figure, figure.emulated) if figure.emulated else []
    assert set(figure.charts) <= set(CHARTS)
    kinds = {(s.engine, s.topology.kind, s.transport.cc, s.routing, s.workload.matrix): s for s in simulated}
    for spec in kinds.values():
        if spec.engine in VIRTUAL_TIME and spec.engine != "linux":
            make(spec.engine).check(spec)
    for specs in (simulated, emulated):
        assert len({spec.content_hash() for spec in specs}) == len(specs)
    ran = [(spec, workload_label(spec)) for spec in (*simulated, *emulated)]
    for row in figure.published:
        here = [spec for spec, workload in ran if row.is_on(spec.topology) and workload == row.workload]
        counts = {spec.transport.subflows for spec in here}
        assert row.subflows in counts or figure.name in WITHOUT_SOME_NETWORKS
    assert figure.published or not figure.section or figure.name == "sigcomm11-short-joins"
