"""The points of `hedera`, and what its statements are measured from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.command import main
from experiments.sigcomm11.hedera import EXPERIMENT, INTERVALS_MS, OVER_FIRST_FIT
from harness.labels import names, routing, workload_label
from harness.options.options import UserOptions, resolve
from model.schedulers import scheduler_words

pytestmark = pytest.mark.usefixtures("in_this_process")

(FIGURE,) = EXPERIMENT.figures


def test_every_scheduler_runs_at_every_interval_beside_tcp_and_mptcp() -> None:
    specs = FIGURE.points(resolve(UserOptions(), FIGURE.defaults), lambda _: 100.0)
    for workload in {workload_label(spec) for spec in specs}:
        here = [spec for spec in specs if workload_label(spec) == workload]
        led = [scheduler_words(spec.scheduler) for spec in here]
        assert len(here) == 2 + 2 * len(INTERVALS_MS)
        assert {"first_fit:ideal", "first_fit:10", "annealing:1000"} < set(led) and led.count("") == 2
        assert {spec.transport.subflows for spec in here if not scheduler_words(spec.scheduler)} == {1, 8}
    assert {row.workload for row in FIGURE.published} <= {workload_label(spec) for spec in specs}
    assert {row.metric for row in FIGURE.published} == set(OVER_FIRST_FIT.values())


def test_real_hosts_run_what_they_can() -> None:
    assert FIGURE.emulated is not None
    specs = FIGURE.points(resolve(UserOptions(), FIGURE.emulated), lambda _: 20.0)
    led = [spec.scheduler for spec in specs if scheduler_words(spec.scheduler)]
    assert len(specs) == 10 and len(led) == 6 and not any(each.ideal for each in led)
    assert {spec.engine for spec in specs} == {"mininet"} and {spec.topology.k for spec in specs} == {4}


def test_a_small_tree_gives_every_statement_a_number(tmp_path: Path) -> None:
    """Verdicts need the paper's size; this only tests that the metric finds its points."""
    short = ("--k", "4", "--warmup", "0.1", "--seconds", "0.8", "--results", str(tmp_path))
    done = CliRunner().invoke(main, ["run", "hedera", *short, "--json"])
    assert done.exit_code == 0, done.output
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(event["event"] == "point" for event in events) == 25
    (chart,) = (tmp_path / "hedera" / "charts").rglob("scheduling*.svg")
    assert "first fit" in chart.read_text().lower()


def test_a_scheduler_is_an_option_of_any_sweep(tmp_path: Path) -> None:
    options = ("--k", "4", "--engine", "simulator", "--subflows", "1", "--scheduler", "first_fit:50")
    planned = CliRunner().invoke(main, ["plan", "cs244-one-to-one", *options, "--results", str(tmp_path)])
    assert planned.exit_code == 0 and "first fit every 50 ms" in planned.output
    wrong = CliRunner().invoke(main, ["plan", "cs244-one-to-one", "--scheduler", "best_fit"])
    assert wrong.exit_code == 2 and "choose from: none, first_fit, annealing" in wrong.stderr


def test_a_scheduler_that_all_points_have_is_named_once() -> None:
    options = resolve(UserOptions.of(scheduler="first_fit:50", engine="simulator"), FIGURE.defaults)
    first, *_ = FIGURE.points(options, lambda _: 100.0)
    led = replace(first, scheduler=options.base.scheduler)
    assert routing([led, led]) == "hashed routing, first fit every 50 ms"
    assert routing([first, led]) == "hashed routing"
    assert names([first, led]) == ["TCP", "TCP, first fit every 50 ms"]
