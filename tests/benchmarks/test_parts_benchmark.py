"""The benchmark runs what its options say, and reports what it ran. No speed is checked."""

from __future__ import annotations

import json

from click.testing import CliRunner

from benchmarks.parts import main


def test_one_json_object_for_each_number_of_threads() -> None:
    argv = ("--k", "4", "--subflows", "2", "--seconds", "0.1", "--parts", "4", "--threads", "1,3", "--json")
    run = CliRunner().invoke(main, argv)
    assert run.exit_code == 0, run.output
    whole, one, three = (json.loads(line) for line in run.stdout.splitlines())
    assert [(each["parts"], each["threads"]) for each in (whole, one, three)] == [(1, 1), (4, 1), (4, 3)]
    assert one["packet_hops"] == three["packet_hops"] > 5000
    assert one["goodput_pct"] == three["goodput_pct"]
    assert (whole["faster"], one["faster_than_one"]) == (1.0, 1.0)
    assert abs(three["faster"] * three["wall_s"] / whole["wall_s"] - 1) < 0.25  # both are rounded to ms


def test_an_odd_fat_tree_is_refused() -> None:
    run = CliRunner().invoke(main, ("--k", "5"))
    assert run.exit_code == 2
    assert "parts:" in run.stderr
