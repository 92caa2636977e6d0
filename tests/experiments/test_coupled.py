"""The coupled experiments through the command line, on the fake engine: plan, charts, theory, report."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest
from click.testing import Result

from experiments import coupled
from experiments.coupled import SHARE_LOSS, SHIFT
from harness.experiment import Figure
from harness.metrics.published import Source
from model.spec import StackSpec
from tests.support.figures import events_of, points_of, refabric

SHORT = ["--engine", "fake", "--seconds", "4", "--warmup", "1"]


def run(tmp_path: Path, *arguments: str) -> Result:
    return refabric("run", *arguments, "--results", tmp_path)


def test_a_plan_has_every_algorithm_and_little_time() -> None:
    rows = events_of(refabric("plan", "coupled-fairness", "--engine", "fake", "--json"))
    specs = [row["spec"] for row in rows if "spec" in row]
    tested = [spec for spec in specs if spec["workload"]["matrix"] == "against_tcp"]
    assert len(tested) == 30
    assert {spec["transport"]["cc"] for spec in tested} == set(coupled.ALGORITHMS)
    assert {spec["topology"]["params"]["lanes"] for spec in tested} == {coupled.REPLICAS}
    assert all(spec["topology"]["params"]["lanes"] == 1 for spec in specs if spec not in tested)
    assert len(specs) - len(tested) == 2, "one TCP alone with loss, one with a queue"
    assert sum(spec["warmup_s"] + spec["seconds"] for spec in specs) < 25 * 60


@pytest.mark.usefixtures("drawn")
def test_fairness_draws_shares_beside_theory(tmp_path: Path) -> None:
    done = run(tmp_path, "coupled-fairness", *SHORT, "--cc", "lia", "--subflows", "2,8")
    assert done.exit_code == 0, done.output
    assert "theory" in done.output and "published  " not in done.output
    folder = tmp_path / "coupled-fairness"
    assert any((folder / "charts" / "coupled-fairness-loss").iterdir())
    page = (folder / "report.html").read_text()
    assert "Theory and measured" in page and "(95 %, 6 repetitions)" in page
    assert "--k " not in page, "its network does not depend on k"


def test_a_page_shows_commands_that_exist(tmp_path: Path) -> None:
    done = run(tmp_path, "coupled-fairness-queue", *SHORT, "--cc", "lia", "--subflows", "2")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "coupled-fairness" / "report-coupled-fairness-queue.html").read_text()
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    (command,) = re.findall(r"refabric run (coupled-fairness-queue --subflows .*)", text)
    again = run(tmp_path, *shlex.split(command))
    assert again.exit_code == 0, again.output
    assert "1 of 1" not in again.output and len(list((tmp_path / "coupled-fairness").glob("fake-*"))) == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--k", "8"], "--k 8: coupled-shift has one network of its own; leave out --k"),
        (["--workload", "stride"], "no path joins"),
    ],
)
def test_what_does_not_suit_is_refused_in_a_line(tmp_path: Path, options: list[str], error: str) -> None:
    done = run(tmp_path, "coupled-shift", *SHORT, *options)
    assert done.exit_code == 2
    assert error in done.output
    assert not (tmp_path / "coupled-shift").exists()


def test_statements_are_theory_and_about_one_algorithm_each() -> None:
    assert {row.source for row in (*SHARE_LOSS, *SHIFT)} == {Source.THEORY}
    assert {row.algorithm for row in SHIFT} == set(coupled.ALGORITHMS)
    assert len({(row.algorithm, row.subflows) for row in SHARE_LOSS}) == len(SHARE_LOSS) == 15


@pytest.mark.parametrize("figure", [*coupled.FAIRNESS.figures, *coupled.SHIFTED.figures])
def test_only_simulated_replicas_are_kept_out_of_step(figure: Figure) -> None:
    specs = {engine: points_of(figure, engine=engine) for engine in ("simulator", "mininet")}
    assert {(s.stack.start_spread_ms, s.link.random_pkts) for s in specs["simulator"]} == {(1000.0, 5)}
    assert {(s.stack, s.link.random_pkts) for s in specs["mininet"]} == {(StackSpec(), 0)}
