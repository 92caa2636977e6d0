"""The benchmark measures both engines and draws its chart. No cost is checked."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks.scaling import main, window_s


def test_one_record_per_engine_and_size_and_a_chart(tmp_path: Path) -> None:
    chart = tmp_path / "scaling.png"
    options = ("--k", "4", "--flow-level-k", "4", "--subflows", "1,2", "--chart", str(chart), "--json")
    run = CliRunner().invoke(main, options)
    assert run.exit_code == 0, run.output
    points = json.loads(run.stdout)["points"]
    assert {(point["engine"], point["subflows"]) for point in points} == {
        ("simulator", 1), ("simulator", 2), ("flow-level", 1), ("flow-level", 2),
    }  # fmt: skip
    assert all(point["hosts"] == 16 and point["peak_mb"] > 10 for point in points)
    assert all("packet_hops_per_cpu_s" in point for point in points if point["engine"] == "simulator")
    assert chart.stat().st_size > 1000


def test_larger_networks_are_simulated_for_a_shorter_time() -> None:
    assert window_s(4) > window_s(16) > window_s(24) > window_s(32) == window_s(48)
