"""ims: its points, its statements and its charts, on a short simulated ladder."""

from __future__ import annotations

from experiments.ims import EXPERIMENT, FIGURES, FIRST, LADDER, REAL_SCALE, STEP_BEFORE
from harness.labels import workload_label
from harness.options.options import resolve
from tests.support.figures import points_of
from workloads.sip import POLICIES


def test_every_statement_is_about_a_step_that_runs() -> None:
    ladder = FIGURES[0]
    labels = {workload_label(s) for s in points_of(ladder)}
    assert labels == {step.workload(scale) for step in LADDER for scale in (100, REAL_SCALE)}
    assert {step.workload() for step in LADDER[1:]} <= set(STEP_BEFORE)
    assert FIRST.workload() == "sip:130"


def test_a_smoke_run_keeps_its_seconds_and_has_one_seed() -> None:
    for figure in FIGURES:
        options = resolve({"profile": "smoke"}, figure.defaults)
        assert options.base.seconds == figure.defaults["smoke.seconds"]
        assert options.seeds == (1,)


def test_real_programs_run_every_policy_and_a_late_controller() -> None:
    real = {figure.name: figure.emulated for figure in FIGURES if figure.emulated}
    assert set(real) == {"ims-ladder", "ims-control", "ims-late"}
    texts = [text.partition("policy=")[2] or "static" for text in real["ims-control"]["workload"]]
    assert sorted(texts) == sorted(POLICIES)
    assert [figure.name for figure in EXPERIMENT.figures if figure.emulated] == ["ims-ladder"]


def test_any_network_with_hosts_carries_an_ims() -> None:
    for typed, kind in (((), "star"), (("ft,4",), "fat_tree")):
        assert {spec.topology.kind for spec in points_of(FIGURES[0], topology=typed)} == {kind}
