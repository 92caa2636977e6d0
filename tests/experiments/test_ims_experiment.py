"""ims: its points, its statements and its charts, on a short simulated ladder."""

from __future__ import annotations

from experiments.ims import EXPERIMENT, FIGURES, FIRST, KNEE_LOADS, LADDER, PUBLISHED, REAL_SCALE, STEP_BEFORE
from harness.labels import workload_label
from harness.options.options import UserOptions, resolve
from plots.registry import CHARTS
from workloads.sip import POLICIES


def test_every_figure_has_points_of_its_own_network() -> None:
    for figure in FIGURES:
        options = resolve(UserOptions(), figure.defaults)
        specs = figure.points(options, lambda _: 100.0)
        assert len({spec.content_hash() for spec in specs}) == len(specs)
        assert {spec.topology.kind for spec in specs} == {"star"}
        assert {spec.transport.subflows for spec in specs} == {1}
        assert set(figure.charts) <= set(CHARTS)
    assert len(figure.points(resolve(UserOptions(), FIGURES[1].defaults), lambda _: 1.0)) == 3 * len(
        KNEE_LOADS
    )


def test_the_knee_chart_marks_the_loads_of_the_slides() -> None:
    assert {figure.name: figure.marks for figure in FIGURES if figure.marks} == {"ims-knee": (130, 180, 320)}


def test_every_statement_is_about_a_step_that_runs() -> None:
    ladder = FIGURES[0]
    labels = {
        workload_label(s) for s in ladder.points(resolve(UserOptions(), ladder.defaults), lambda _: 1.0)
    }
    assert {row.workload for row in PUBLISHED} <= labels
    assert labels == {step.workload(scale) for step in LADDER for scale in (100, REAL_SCALE)}
    assert {step.workload() for step in LADDER[1:]} <= set(STEP_BEFORE)
    assert FIRST.workload() == "sip:130"


def test_a_smoke_run_keeps_its_seconds_and_has_one_seed() -> None:
    for figure in FIGURES:
        options = resolve(UserOptions(profile="smoke"), figure.defaults)
        assert options.base.seconds == figure.defaults.brief_s
        assert options.seeds == (1,)


def test_real_programs_run_every_policy_and_a_late_controller() -> None:
    real = {figure.name: figure.emulated for figure in FIGURES if figure.emulated}
    assert set(real) == {"ims-ladder", "ims-control", "ims-late"}
    texts = [text.partition("policy=")[2] or "static" for text in real["ims-control"].workloads]
    assert sorted(texts) == sorted(POLICIES)
    assert [figure.name for figure in EXPERIMENT.figures if figure.emulated] == ["ims-ladder"]


def test_any_network_with_hosts_carries_an_ims() -> None:
    given = UserOptions.of(topology=("ft,4",))
    specs = FIGURES[0].points(resolve(given, FIGURES[0].defaults), lambda _: 100.0)
    assert {spec.topology.kind for spec in specs} == {"fat_tree"}
