"""Texts of others: none of their control characters reaches a terminal, and no formula a spreadsheet."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from common.errors import CommandError, StoreError
from common.text import printable
from experiments.command import main
from harness.metrics import summary_csv
from harness.results import run_json
from harness.results.store import Store, load, load_point, point_name, scan
from harness.results.tables import Content
from model.result import Status
from model.spec import WorkloadSpec
from tests.support.reasons import of_text
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\r\u202eb\nok       forged-line\x9b31m\x7f"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store.open(tmp_path / "results", EXPERIMENT)
    put_baseline(opened, spec_of(), 4.7)
    return opened


def refabric(store: Store, *arguments: str) -> str:
    where = ("--results", str(store.directory.parent))
    done = CliRunner().invoke(main, [*arguments, *where])
    assert done.exit_code in {0, 1}, (done.output, done.exception)
    return done.output


def forbidden(text: str) -> set[str]:
    return {c for c in text if not c.isprintable() and c != "\n"}


def test_no_control_character_of_a_stored_text_is_shown(store: Store) -> None:
    result = result_of([1.0], Status.SUSPECT, HOSTILE)
    put(store, spec_of(), dataclasses.replace(result, provenance={"kernel": HOSTILE, HOSTILE: HOSTILE}))
    shown = refabric(store, "status", EXPERIMENT, "--k", "4", "--rate", "5") + refabric(
        store, "plot", EXPERIMENT
    )
    assert "owned" in shown
    assert forbidden(shown) == set()
    assert not any(line.startswith("ok       forged-line") for line in shown.splitlines())


@pytest.mark.parametrize(
    ("there", "hostile"), [("flow,src", f"flow,{HOSTILE[:12]}"), ("p0e0h0", "p0\x1b[2J")]
)
def test_nor_of_a_table_that_its_run_json_promises(store: Store, there: str, hostile: str) -> None:
    victim = put(store, spec_of(), result_of([1.0])).path
    text = (victim / "flows.csv").read_text().replace(there, hostile, 1).encode()
    (victim / "flows.csv").write_bytes(text)
    run = json.loads((victim / "run.json").read_text())
    run["tables"]["flows.csv"] = dataclasses.asdict(Content.of(1, text))
    (victim / "run.json").write_text(json.dumps(run))
    with pytest.raises(StoreError) as caught:
        list(load_point(victim).flows)
    assert forbidden(str(caught.value)) == set()


def test_errors_quote_programs_without_their_control_characters() -> None:
    assert str(CommandError("running ip: \x1b[31mno\x1b[0m\nlast line")) == (
        "running ip: \\x1b[31mno\\x1b[0m\nlast line"
    )
    assert printable("K\N{LATIN SMALL LETTER O WITH DIAERESIS}ln 5 \N{MICRO SIGN}s") == "Köln 5 µs"


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_that_a_spreadsheet_would_compute_is_quoted(store: Store, first: str) -> None:
    formula = f"{first}cmd|' /C calc'!A0"
    result = dataclasses.replace(result_of([1.0], Status.SUSPECT), reasons=(of_text(formula),))
    point = dataclasses.replace(put(store, spec_of(), result), reasons=(of_text(formula),))
    summary_csv.write(store, [point])
    with (store.directory / "summary.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    expected = {"\t": "\\t", "\r": "\\r"}.get(first, f"'{first}")
    assert row["reasons"] == f"{expected}{formula[1:]}"
    assert float(row["goodput_mbps_mean"]) == 1.0


def test_numbers_below_zero_are_no_formulas() -> None:
    assert summary_csv._text(-1.5) == "-1.5"


@pytest.mark.parametrize("deep", [b"[" * 5000 + b"]" * 5000, b'{"a":' * 60 + b"1" + b"}" * 60])
def test_depth_digits_and_lone_surrogates_of_json_are_refused(tmp_path: Path, deep: bytes) -> None:
    for data in (deep, b'{"a": 1e999}', b'{"a": ' + b"9" * 30 + b"}", b'{"a": "\\ud800"}', b'{"a": NaN}'):
        (tmp_path / "run.json").write_bytes(data)
        with pytest.raises(StoreError, match="truncated or not JSON"):
            run_json.read_run(tmp_path / "run.json")


def test_a_workload_is_no_path(store: Store) -> None:
    """A text parameter is part of the point's name, but cannot lead to a folder outside the results."""
    spec = dataclasses.replace(spec_of(), workload=WorkloadSpec("poisson", {"load": 40, "sizes": "../../x"}))
    victim = put(store, spec_of(), result_of([1.0])).path
    run = json.loads((victim / "run.json").read_text())
    run |= {"spec": spec.to_json(), "hash": spec.content_hash()}
    (victim / "run.json").write_text(json.dumps(run))
    (error,) = scan(store.directory).broken
    assert "it is the result of" in str(error)
    assert point_name(spec_of()) not in {point.name for point in scan(store.directory).points}
    assert len(load(store.directory.parent / "none")) == 0
