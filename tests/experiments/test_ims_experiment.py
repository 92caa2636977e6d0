"""ims: its points, its statements and its charts, on a short simulated ladder."""

from __future__ import annotations

from pathlib import Path

from experiments.ims.figures import FIGURES, KNEE_LOADS
from experiments.ims.ladder import FIRST, LADDER, REAL_SCALE
from experiments.ims.statements import PUBLISHED, STEP_BEFORE
from harness.plan.labels import workload_label
from harness.plan.options import Given, resolve
from plots.registry import CHARTS


def test_every_figure_has_points_of_its_own_network() -> None:
    for figure in FIGURES:
        options = resolve(Given(), figure.defaults)
        specs = figure.points(options, lambda _: 100.0)
        assert len({spec.content_hash() for spec in specs}) == len(specs)
        assert {spec.topology.kind for spec in specs} == {"star"}
        assert {spec.transport.subflows for spec in specs} == {1}
        assert set(figure.charts) <= set(CHARTS)
    assert len(figure.points(resolve(Given(), FIGURES[1].defaults), lambda _: 1.0)) == 3 * len(KNEE_LOADS)


def test_every_statement_is_about_a_step_that_runs() -> None:
    ladder = FIGURES[0]
    labels = {workload_label(s) for s in ladder.points(resolve(Given(), ladder.defaults), lambda _: 1.0)}
    assert {row.workload for row in PUBLISHED} <= labels
    assert labels == {step.workload(scale) for step in LADDER for scale in (100, REAL_SCALE)}
    assert {step.workload() for step in LADDER[1:]} <= set(STEP_BEFORE)
    assert FIRST.workload() == "sip:130"


def test_a_smoke_run_keeps_its_seconds(tmp_path: Path) -> None:
    del tmp_path
    for figure in FIGURES:
        options = resolve(Given(profile="smoke"), figure.defaults)
        assert options.base.seconds == figure.defaults.brief_s
