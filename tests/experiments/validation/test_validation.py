"""Runs of the validation experiment: its verdicts on the simulator, in virtual time."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from engines.engine import Silent
from engines.registry import SIMULATOR
from engines.simulation.engine import SimulatorEngine
from experiments.command import main
from experiments.registry import CATALOGUE
from experiments.validation.theory import EXPERIMENT, FIGURES, LOSSES_PCT, RATES_MBPS, SHORTFALL_BYTES
from harness.claims.claims import AGREES, DIFFERS, verdicts
from harness.experiment import Figure
from harness.options.options import UserOptions, resolve
from harness.options.rates import FIXED
from harness.plan.session import make_plan
from harness.results import point_results
from harness.results.store import Store, load
from model.spec import RunSpec
from tests.support.stored_points import put

pytestmark = pytest.mark.usefixtures("in_this_process")


def refabric(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def words_on(figure: str, results: Path, *options: str) -> dict[str, str]:
    """Return the words of the verdicts by the name of the metric."""
    done = refabric("run", f"validation-{figure}", "--results", str(results), "--json", *options)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return {event["quantity"]: event["verdict"] for event in events if event["event"] == "verdict"}


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_brief_profile_does_not_cut_what_theory_needs(figure: Figure) -> None:
    assert resolve(UserOptions(profile="smoke"), figure.defaults) == resolve(UserOptions(), figure.defaults)


@pytest.mark.parametrize(
    ("figure", "metrics"),
    [
        ("fill", {"shortfall_bytes", "fill_pct"}),
        ("saw", {"window_top_pkts", "saw_rounds", "saw_mean_pct"}),
        ("wait", {"wait_pkts", "empty_way_ms", "waits_exact_pct"}),
        ("conserved", {"unaccounted_pkts", "undelivered_bytes"}),
    ],
)
def test_arithmetic_and_theory_agree(figure: str, metrics: set[str], tmp_path: Path) -> None:
    rate = ("--rate", "100") if figure == "fill" else ()
    assert words_on(figure, tmp_path, *rate) == dict.fromkeys(metrics, AGREES)
    charts = [path.name for path in (tmp_path / "validation" / "charts").rglob("*.svg")]
    assert len(charts) == 1 and (tmp_path / "validation" / f"report-validation-{figure}.html").is_file()


def test_the_square_root_law(tmp_path: Path) -> None:
    found = words_on("loss", tmp_path, "--seconds", "60")
    assert found == dict.fromkeys(("mathis_slope", "mathis_constant", "over_padhye"), AGREES)
    (chart,) = (tmp_path / "validation" / "charts").rglob("*.svg")
    assert "Mathis et al." in chart.read_text() and "Padhye et al." in chart.read_text()


def test_points_are_those_asked_for_or_all() -> None:
    fill, loss = (next(f for f in FIGURES if f.name == f"validation-{name}") for name in ("fill", "loss"))
    assert [spec.link.rate_mbps for spec in specs_of(fill)] == list(RATES_MBPS)
    assert [spec.link.rate_mbps for spec in specs_of(fill, rate="50")] == [50.0]
    assert [100 * spec.link.loss for spec in specs_of(loss)] == pytest.approx(LOSSES_PCT)
    assert [100 * spec.link.loss for spec in specs_of(loss, loss=1.0)] == pytest.approx([1.0])


def specs_of(figure: Figure, **given: object) -> list[RunSpec]:
    options = resolve(UserOptions.of(**given), figure.defaults)
    return figure.points(options, lambda _network: options.rate_mbps or 0.0)


def test_real_hosts_are_asked_for_no_more_than_they_carry() -> None:
    fill = next(f for f in FIGURES if f.name == "validation-fill")
    assert max(spec.link.rate_mbps for spec in specs_of(fill, engine="mininet")) == 100.0
    assert [spec.link.rate_mbps for spec in specs_of(fill, engine="mininet", rate="500")] == [500.0]


def test_no_baseline_is_run_for_figures_without_percentages() -> None:
    plan = make_plan(CATALOGUE.find("validation-saw"), UserOptions(), SimulatorEngine())
    assert [job.spec.workload.matrix for job in plan.jobs] == ["against_tcp"]
    assert plan.figures[0].rate_of(plan.figures[0].topologies[0]).how == FIXED


def test_a_byte_too_few_is_found(tmp_path: Path) -> None:
    """The statement detects what it claims to: one byte, at one rate."""
    figure = next(f for f in FIGURES if f.name == "validation-fill")
    store = Store.open(tmp_path, EXPERIMENT.folder)
    for spec in specs_of(figure, rate="10"):
        result = SimulatorEngine().run(spec, Silent(), tmp_path)
        if spec.link.rate_mbps == 10.0:
            flow = dataclasses.replace(result.flows[0], bytes_received=result.flows[0].bytes_received - 1)
            result = dataclasses.replace(result, flows=(flow,))
        put(store, spec, result)
    points = point_results.judge(load(store.directory))
    (verdict,) = (v for v in verdicts(figure, points) if v.published.metric is SHORTFALL_BYTES)
    assert verdict.word == DIFFERS and verdict.measured is not None
    assert verdict.measured.value == pytest.approx(1.0, abs=1e-6)


def test_statements_on_real_hosts_wait_for_real_hosts(tmp_path: Path) -> None:
    """They have rows of their own, with tolerances of their own, once real hosts ran."""
    figure = next(f for f in FIGURES if f.name == "validation-saw")
    assert {v.published.engine for v in verdicts(figure, [])} == {SIMULATOR}
    store = Store.open(tmp_path, EXPERIMENT.folder)
    (spec,) = specs_of(figure)
    result = SimulatorEngine().run(spec, Silent(), tmp_path)
    put(store, dataclasses.replace(spec, engine="mininet"), result)
    points = point_results.judge(load(store.directory))
    found = verdicts(figure, points)
    assert {v.published.engine for v in found} == {"mininet"}
    assert all("(real hosts)" in v.published.words for v in found)
