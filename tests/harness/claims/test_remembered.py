"""Verdicts compared with the stored ones: changes are reported, other settings are not compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness.claims import remembered
from harness.claims.remembered import Remembered

THEN = Remembered("agrees", 84.2, "%")


def name(setting: str = "100 Mb/s links, 50 packet queues, 4 s", seeds: int = 6) -> str:
    row = {
        "figure": "throughput",
        "quantity": "mean",
        "topology": "fat_tree",
        "k": 8,
        "shape": [],
        "workload": "one_to_one",
        "subflows": 8,
        "algorithm": "",
        "relation": ">=",
        "value": 90.0,
        "setting": setting,
    }
    return remembered._key(row, seeds)


def test_the_same_verdict_is_one_line_whatever_the_value() -> None:
    found = remembered.compared({name(): THEN}, {name(): replace(THEN, measured=83.9)})
    assert (found.known, found.changed) == (1, ())
    assert str(found) == "All 1 verdicts are as in baselines/verdicts.json."


def test_a_changed_verdict_is_reported_with_both_values() -> None:
    now = Remembered("differs", 71.0, "%")
    found = remembered.compared({name(): THEN, name(seeds=3): THEN}, {name(): now, name(seeds=3): THEN})
    assert str(found).splitlines() == [
        "1 of 2 verdicts have changed since baselines/verdicts.json:",
        "  throughput: mean >= 90 (fat_tree 8, one_to_one, 8 subflows): differs (71 %), stored "
        "as agrees (84.2)",
    ]


def test_another_setting_or_number_of_seeds_is_not_compared() -> None:
    found = remembered.compared({name(): THEN}, {name("10 Mb/s links"): THEN, name(seeds=7): THEN})
    assert (found.known, str(found)) == (0, "")


def test_the_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.json"
    assert remembered.read(file) == {}
    remembered.write({name(): THEN, name(seeds=3): replace(THEN, word="differs")}, file)
    assert remembered.read(file) == {name(): THEN, name(seeds=3): replace(THEN, word="differs")}
