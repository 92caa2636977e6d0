"""The sweep by congestion control: what it runs under which options, and how points are named."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from click.testing import Result

from common.errors import UsageError
from engines import registry
from experiments.sigcomm11.congestion_controls import EXPERIMENT, NAME
from model.spec import RunSpec
from tests.support import chart_files
from tests.support.fake_engine import FakeEngine
from tests.support.figures import points_of, refabric

FIGURE = EXPERIMENT.figures[0]
TCP = ("reno", "hashed", 1)
SCATTERED = ("reno", "scatter", 1)


def transports(**given: str) -> list[tuple[str, str, int]]:
    return [(s.transport.cc, s.routing, s.transport.subflows) for s in points_of(FIGURE, **given)]


def mptcp(*ccs: str, counts: tuple[int, ...] = (8,), routing: str = "hashed") -> list[tuple[str, str, int]]:
    return [(cc, routing, n) for cc in ccs for n in counts]


ALL = ("reno", "ewtcp", "lia", "olia", "balia")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [TCP, SCATTERED, *mptcp(*ALL)]),
        ({"subflows": "1,2,8"}, [TCP, SCATTERED, *mptcp(*ALL, counts=(2, 8))]),
        ({"profile": "smoke"}, [TCP, SCATTERED, *mptcp(*ALL, counts=(2, 8))]),
        ({"cc": "lia"}, [TCP, SCATTERED, *mptcp("lia")]),
        ({"cc": "olia, cubic,olia"}, [TCP, SCATTERED, *mptcp("olia", "cubic")]),
        ({"cc": "lia", "routing": "ecmp"}, [("reno", "ecmp", 1), SCATTERED, *mptcp("lia", routing="ecmp")]),
    ],
)
def test_options_choose_among_mptcp_and_the_baselines_stay(
    given: dict[str, str], expected: list[tuple[str, str, int]]
) -> None:
    assert transports(**given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"subflows": "1"}, "--subflows 1: .* give counts from 2 up"),
        ({"routing": "scatter"}, "--routing scatter: PacketScatter is always part of"),
        ({"cc": "lia,vegas"}, "--cc vegas: unknown; did you mean ccp:vegas"),
        ({"cc": "lia,"}, "--cc lia,: a name is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        transports(**given)


def run(results: Path, *more: str) -> Result:
    return refabric("run", NAME, "--engine", "fake", "--k", "4", "--results", results, *more)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    with pytest.MonkeyPatch.context() as patch:
        chart_files.draw_all(patch)
        done = run(folder)
    assert done.exit_code == 0, done.output
    (folder / "stdout.txt").write_text(done.stdout)
    return folder


NAMES = (
    "TCP",
    "PacketScatter",
    *(f"MPTCP 8 {name}" for name in ("uncoupled (reno)", "EWTCP", "LIA", "OLIA", "BALIA")),
)


def test_one_baseline_one_chart_and_every_line_named(results: Path) -> None:
    printed = (results / "stdout.txt").read_text()
    assert "8 points" in printed
    for name in NAMES:
        assert re.search(rf"\[\d/8\] {re.escape(name)}: ", printed)
        assert f"\n {name} " in printed, "a row of the one table"
    charts = {path.name for path in (results / NAME / "charts").iterdir()}
    assert charts == {"by_congestion_control-fat_tree-k4-one_to_one-8subflows.svg"}


def test_names_and_summary_tell_points_apart(results: Path) -> None:
    with (results / NAME / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    which = [(row["workload"], row["subflows"], row["cc"], row["routing"]) for row in rows]
    assert len(set(which)) == len(rows) == 8
    status = refabric("status", NAME, "--engine", "fake", "--k", "4", "--results", results)
    assert "8 of 8 planned points finished" in status.stdout


def test_the_report_repeats_it_by_one_command(results: Path) -> None:
    assert refabric("report", NAME, "--results", results).exit_code == 0
    page = (results / NAME / "report.html").read_text()
    assert all(f'<th scope="row">{name}</th>' in page for name in NAMES)
    assert page.count('class="command"') == 1 and "cc reno,ewtcp,lia,olia,balia" in page
    assert {row.algorithm for row in FIGURE.published} == {"tcp", "lia"}


def test_compare_names_algorithms_and_keeps_them_in_one_table(results: Path, tmp_path: Path) -> None:
    assert run(tmp_path, "--cc", "lia,olia").exit_code == 0
    done = refabric("compare", results, tmp_path)
    assert done.exit_code == 1, "B lacks algorithms of A"
    assert done.stdout.count("mean goodput") == 1
    for name in ("TCP", "PacketScatter", "MPTCP 8 LIA", "MPTCP 8 OLIA"):
        assert sum(line.strip().startswith(f"{name} ") for line in done.stdout.splitlines()) >= 2
    assert "MPTCP 8 uncoupled (reno), MPTCP 8 EWTCP, MPTCP 8 BALIA: FatTree" in done.stdout, "only in A"


@pytest.mark.usefixtures("drawn")
def test_several_congestion_controls_in_any_sweep(tmp_path: Path) -> None:
    done = refabric(
        "run", "cs244-one-to-one", "--engine", "fake", "--k", "4", "--subflows", "1,8", "--cc", "reno,lia",
        "--results", tmp_path,
    )  # fmt: skip
    assert done.exit_code == 0
    for name in ("TCP (beside reno)", "MPTCP 8 uncoupled (reno)", "TCP (beside lia)", "MPTCP 8 LIA"):
        assert f"\n {name} " in done.stdout
    assert len(list((tmp_path / "cs244-one-to-one" / "charts").glob("*.svg"))) == 4


def test_without_coupling_a_comparison_is_not_said_to_run_uncoupled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Unable(FakeEngine):
        def coupled_cc(self) -> tuple[str, str]:
            return "reno", "no BTF here"

    monkeypatch.setitem(registry.ENGINES, "fake", Unable)
    assert "no BTF here" not in run(tmp_path).stdout
    alone = ("--engine", "fake", "--k", "4", "--subflows", "8", "--results", tmp_path)
    assert "uncoupled: no BTF here" in refabric("run", "cs244-one-to-one", *alone).stdout


def test_a_failed_algorithm_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def of_olia(spec: RunSpec) -> bool:
        return spec.transport.cc == "olia"

    monkeypatch.setitem(registry.ENGINES, "fake", lambda: FakeEngine(fail=of_olia))
    done = run(tmp_path)
    assert done.exit_code == 1
    assert "failed: MPTCP 8 OLIA, seed 1: running the fake engine" in done.stdout
