"""`import refabric`: results as arrays, and the errors of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import refabric
from experiments.command import main
from harness.cli.options import argv_of
from harness.cli.run import run as run_command
from harness.python_api import NO_PANDAS, Columns

STUDY = "cs244-one-to-one"
QUICK: dict[str, Any] = {"k": 4, "engine": "simulator", "seconds": 2, "warmup": 0.5, "quiet": True}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> refabric.Results:
    return refabric.run(STUDY, subflows=[1, 8], results=tmp_path_factory.mktemp("python"), **QUICK)


def test_points_have_flows_ports_and_samples_as_arrays(results: refabric.Results) -> None:
    assert [point.is_baseline for point in results] == [True, False, False]
    tcp, mptcp = results.measured
    assert (tcp.subflows, mptcp.subflows) == (1, 8)
    for point in (tcp, mptcp):
        assert point.status == "ok"
        goodput = point.flows["goodput_mbps"]
        assert goodput.shape == (16,)
        assert goodput.dtype == np.float64
        assert goodput.mean() == pytest.approx(point.goodput_mbps)
        assert point.flows["dst"].dtype.kind == "U"
        assert point.ports.rows == 2 * 48, "two directions of each link"
        assert point.samples["goodput"]["mbps"].max() <= 100
    assert mptcp.goodput_mbps is not None
    assert tcp.goodput_mbps is not None
    assert mptcp.goodput_mbps > tcp.goodput_mbps


def test_loading_gives_the_same_points(results: refabric.Results) -> None:
    for folder in (results.folder, results.folder.parent):
        loaded = refabric.load(folder)
        assert [point.name for point in loaded] == [point.name for point in results]
        assert np.array_equal(loaded[1].flows["goodput_mbps"], results[1].flows["goodput_mbps"])
    summary = results.summary()
    assert summary["subflows"].tolist() == [1, 1, 8]
    assert summary.rows == len(results)


def test_a_summary_has_every_field_of_the_spec_and_a_point_every_metric(results: refabric.Results) -> None:
    summary, spec = results.summary(), results[0].spec
    assert summary["link.delay_us"].tolist() == [point.spec.link.delay_us for point in results]
    assert summary["stack.min_rto_ms"][0] == spec.stack.min_rto_ms
    assert json.loads(summary["events"][0]) == list(spec.events)
    assert summary["scheduler.name"][0] == spec.scheduler.name
    assert results.measured[-1].metrics["goodput_pct_min"] == summary["goodput_pct_min"][-1]


def test_a_run_repeats_nothing_and_shows_progress(
    results: refabric.Results, capsys: pytest.CaptureFixture[str]
) -> None:
    loud = {**QUICK, "quiet": False}
    again = refabric.run(STUDY, subflows=[1, 8], results=results.folder.parent, **loud)
    assert [point.name for point in again] == [point.name for point in results]
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing to run" in said.err


@pytest.mark.usefixtures("drawn")
def test_notebooks_show_results_points_tables_and_charts(results: refabric.Results, tmp_path: Path) -> None:
    (chart,) = results.plot("rank")
    assert chart.save(tmp_path / "rank.svg").read_text() == chart.svg
    assert len(results.plot()) > 1
    assert 'src="data:image/svg+xml;base64,' in chart._repr_html_()
    for shown in (results, results[1], results[1].flows):
        assert "<table>" in shown._repr_html_()
    with pytest.raises(refabric.UsageError, match=r"chart rnak: .* throughput, rank"):
        results.plot("rnak")


BAD: list[tuple[str, dict[str, Any], list[str]]] = [
    (STUDY, {"k": 5}, ["--k", "5"]),
    (STUDY, {"subflow": 2}, ["--subflow", "2"]),
    (STUDY, {"engine": "simlator"}, ["--engine", "simlator"]),
    (STUDY, {"workload": ["one_to_one", "nope"]}, ["--workload", "one_to_one,nope"]),
    (STUDY, {"rate": -1.0}, ["--rate", "-1"]),
    ("cs244-one-to-on", {}, []),
]


@pytest.mark.parametrize(("name", "options", "typed"), BAD)
def test_errors_are_those_of_the_command_line(
    name: str, options: dict[str, Any], typed: list[str], tmp_path: Path
) -> None:
    with pytest.raises(refabric.UsageError) as error:
        refabric.run(name, results=tmp_path / "results", **options)
    assert "\n" not in str(error.value)
    said = CliRunner().invoke(main, ["run", name, *typed, "--results", str(tmp_path / "results")]).stderr
    assert said.startswith(f"refabric: {error.value}")
    assert not (tmp_path / "results").exists()


def test_terminal_options_are_refused_in_python() -> None:
    with pytest.raises(refabric.UsageError, match="No such option '--json'"):
        refabric.run(STUDY, json=True)


def test_values_become_options() -> None:
    values = {
        "k": [4, 8], "rate": 2.5, "qmon": True, "force": False, "seed": None, "dask": "tcp://h:1",
        "stack": {"acks": "at_once", "sack": False}, "event": ["2:p0a0-c0", "3:p0a0-c0:1"],
    }  # fmt: skip
    assert argv_of(run_command, values) == [
        "--k=4,8", "--rate=2.5", "--qmon", "--dask=tcp://h:1", "--stack=acks=at_once", "--stack=sack=off",
        "--event=2:p0a0-c0", "--event=3:p0a0-c0:1",
    ]  # fmt: skip
    with pytest.raises(refabric.UsageError, match="--k"):
        argv_of(run_command, {"k": [[4]]})


def test_folders_without_points_are_refused(results: refabric.Results, tmp_path: Path) -> None:
    with pytest.raises(refabric.UsageError, match="no such folder"):
        refabric.load(tmp_path / "nowhere")
    with pytest.raises(refabric.UsageError, match="no point there can be read"):
        refabric.load(tmp_path)
    with pytest.raises(refabric.UsageError, match="did you mean cs244-fig2"):
        refabric.load(results.folder, experiment="cs244-fig22")
    with pytest.raises(KeyError, match="no samples 'queue'"):
        results[1].samples["queue"]


def test_pandas_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = Columns({"a": np.array([1, 2])})
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(refabric.UsageError, match=NO_PANDAS[:23]):
        columns.to_pandas()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert columns.to_pandas() == ["a"]


def _imported(program: str) -> set[str]:
    """Return the modules that a Python program has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def test_every_name_can_be_imported_and_imports_no_chart() -> None:
    found = _imported("from refabric import *\nassert callable(run) and callable(load)")
    assert "harness.python_api" in found
    assert not found & {"matplotlib", "distributed"}


def test_a_command_imports_what_it_uses_only() -> None:
    found = _imported("import refabric.command, experiments.command")
    assert "harness.cli.commands" in found
    assert not found & {"matplotlib", "distributed", "jinja2", "http.server", "harness.python_api"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'runs'"):
        _ = refabric.runs  # type: ignore[attr-defined]
    assert {"run", "load", "Results"} <= set(dir(refabric))
