"""Damaged files of a point, byte by byte: each is noticed, named in one line, and costs itself alone."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.errors import StoreError, UsageError
from harness.results import tables
from harness.results.run_json import SCHEMA, sample_path
from harness.results.store import MAX_NAMED, Store, load_point, scan
from harness.results.tables import Content
from model.result import SAMPLE_COLUMNS, Status, Table
from tests.support.stored_points import EXPERIMENT, put, result_of, spec_of

NUMBERS = Table(
    {
        "t_s": np.array([-1.0, 0.1 + 0.2, 2.5]),
        "flow": np.array([0, 1, 123456789012]),
        "mbps": np.array([float("nan"), 1e-9, 1234.5]),
    }
)
TEXTS = Table.from_rows(("t_s", "port", "note"), [(0.5, 1, 'a,"b"'), (1.5, 2, ""), (2.5, 3, "c d")])
ONE = Table.from_rows(("t_s",), [(0.25,)])
NONE = Table.from_rows(("t_s", "flow"), ())
TABLES = {"numbers": NUMBERS, "texts": TEXTS, "one": ONE, "none": NONE}


def zipped(text: str) -> bytes:
    return gzip.compress(text.encode(), mtime=0)


def content_of(table: Table) -> Content:
    return Content.of(len(table), tables.table_bytes(table))


def stored_bytes(table: Table) -> bytes:
    return tables.packed(tables.table_bytes(table))


def read(path: Path, data: bytes, content: Content) -> Table | str:
    """Return the table in a file of these bytes, or the error's text; no other exception may be raised."""
    path.write_bytes(data)
    try:
        return tables.read_table(path, content)
    except StoreError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
        return str(error)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "goodput.csv.gz"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
class TestTables:
    def test_whole(self, file: Path, table: Table) -> None:
        assert read(file, stored_bytes(table), content_of(table)) == table

    def test_cut_off_anywhere(self, file: Path, table: Table) -> None:
        data = stored_bytes(table)
        for length in range(len(data)):
            assert isinstance(read(file, data[:length], content_of(table)), str), length

    def test_text_cut_off_anywhere(self, file: Path, table: Table) -> None:
        text = tables.table_bytes(table).decode()
        for length in range(len(text)):
            assert isinstance(read(file, zipped(text[:length]), content_of(table)), str), text[:length]

    def test_a_byte_changed_anywhere(self, file: Path, table: Table) -> None:
        data = stored_bytes(table)
        for place in range(len(data)):
            changed = bytearray(data)
            changed[place] ^= 0x55
            found = read(file, bytes(changed), content_of(table))
            # Time, system and compression level in gzip's header do not matter.
            assert isinstance(found, str) or (found == table and place < 10), place

    def test_rows_other_than_promised(self, file: Path, table: Table) -> None:
        for expected in {len(table) + 1, len(table) + 100, max(0, len(table) - 1)} - {len(table)}:
            promised = dataclasses.replace(content_of(table), rows=expected)
            found = read(file, stored_bytes(table), promised)
            assert isinstance(found, str) or (found == table and not expected), expected


@pytest.mark.parametrize(
    "text",
    [
        "t_s,flow\n1.0,2\n\n",
        "t_s,flow\n1.0,2\n1.0\n",
        "t_s,flow\n1.0,2\n1.0,2,3\n",
        "t_s,flow\n1.0,2\n1.0,2.5\n",
        "t_s,flow\n1.0,2\n1.0,x\n",
        "t_s,flow\n1.0,2\n,\n",
        "t_s,flow\n1.0,2\n1.0,99999999999999999999\n",
        "t_s,flow\n1.0,99999999999999999999\n1.0,2\n",
        "t_s,flow\n1.0,2\ninf,2\n",
        "t_s,flow\n-inf,2\n1.0,2\n",
        "t_s\n1.0,2\n1.0,2\n",
        "t_s,t_s\n1.0,2\n1.0,2\n",
        't_s,flow\n1.0,"2\n1.0,2\n',
        't_s,"flow\n1.0,2\n1.0,2\n',
        "\n1.0,2\n1.0,2\n",
        "1.0,2\n1.0,2\n",
        "\n\n\n",
        "t_s,note\n1.0,a\n1.0\n",
        "t_s,note\n1.0,a\nx,b\n",
        "t_s,flow\n1.0,2\n1.0,2\n1.0,2\n",
        "t_s,flow\0\n1.0,\0\n1.0,\0\n\0",
    ],
)
def test_edited_tables_of_two_rows(file: Path, text: str) -> None:
    assert isinstance(read(file, zipped(text), Content.of(2, text.encode())), str)


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b", b"PK\x03\x04", b"\0" * 100, b"\xff" * 100, zipped("")])
def test_what_is_no_table(file: Path, data: bytes) -> None:
    assert isinstance(read(file, data, Content.of(0, b"t_s\n")), str)


@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_damage_in_the_middle_of_much(file: Path, size: int) -> None:
    """Zlib's own errors, met only after many good blocks."""
    table = Table({"t_s": np.random.default_rng(1).random(size)})
    data = bytearray(stored_bytes(table))
    data[len(data) // 2] ^= 0xFF
    assert isinstance(read(file, bytes(data), content_of(table)), str)


@pytest.fixture
def victim(store: Store) -> Path:
    """Return the folder of one of two points."""
    put(store, spec_of(2), result_of([1.0]))
    return put(store, spec_of(1), result_of([1.5, 2.25])).path


def promise(victim: Path, file: str) -> None:
    """Let run.json promise the table that is there."""
    run = json.loads((victim / "run.json").read_text())
    data = (victim / file).read_bytes()
    text = gzip.decompress(data) if file.endswith(".gz") else data
    run["tables"][file] = dataclasses.asdict(Content.of(run["tables"][file]["rows"], text))
    (victim / "run.json").write_text(json.dumps(run))


def only_damage(victim: Path, file: str) -> str:
    """Return the scan's error about the victim; check that its neighbour stays usable."""
    found = scan(victim.parent)
    assert [point.spec for point in found.points] == [spec_of(2)]
    (error,) = found.broken
    assert str(victim / file) in str(error)
    assert "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize("file", ["run.json", "flows.csv", "ports.csv"])
def test_a_point_whose_file_is_cut_off_anywhere(victim: Path, file: str) -> None:
    data = (victim / file).read_bytes()
    for length in range(len(data) - (file == "run.json")):  # JSON is whole without its last newline
        (victim / file).write_bytes(data[:length])
        with pytest.raises(StoreError, match=re.escape(str(victim / file))):
            load_point(victim)
    only_damage(victim, file) if file != "run.json" else None


FOREIGN: list[Callable[[dict[str, Any]], object]] = [
    lambda run: run.pop("hash"),
    *[lambda run, number=number: run.update(schema=number) for number in (0, 2, SCHEMA + 1, None)],
    lambda run: run.update(hash="0" * 12),
    lambda run: run["spec"].update(seed=99),
    lambda run: run["spec"].update(colour="red"),
    lambda run: run["spec"]["topology"]["params"].update(k="four"),
    lambda run: run["spec"].update(link=5),
    lambda run: run.update(status="splendid"),
    lambda run: run.update(reasons="because"),
    lambda run: run.update(reasons=[1, 2]),
    lambda run: run.update(metrics={"cpu_busy_pct": "much"}),
    lambda run: run.update(metrics={"cpu_busy_pct": [1]}),
    lambda run: run.update(provenance="mine"),
    lambda run: run.update(hosts=None),
    lambda run: run["tables"].update({"flows.csv": "two"}),
    lambda run: run["tables"].pop("ports.csv"),
    lambda run: run["tables"]["flows.csv"].update(rows="two"),
    lambda run: run["tables"].update({"samples/../x.csv.gz": run["tables"]["flows.csv"]}),
]


@pytest.mark.parametrize("edit", FOREIGN)
def test_a_run_json_of_other_contents(victim: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    run = json.loads((victim / "run.json").read_text())
    edit(run)
    (victim / "run.json").write_text(json.dumps(run))
    error = str(scan(victim.parent).broken[0])
    assert str(victim) in error
    assert [point.spec for point in scan(victim.parent).points] == [spec_of(2)]


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"schema": NaN}', "\ufeff{}", '"refabric-run"', "null", "{}", '{"format": "flent"}'],
)
def test_json_that_is_no_run(victim: Path, text: str) -> None:
    (victim / "run.json").write_text(text)
    only_damage(victim, "run.json")


@pytest.mark.parametrize("cell", ["inf", "-inf", "nan", "-1.5", "", "x"])
def test_an_impossible_goodput(victim: Path, cell: str) -> None:
    text = (victim / "flows.csv").read_text()
    assert text.count(",2.25,") == 1
    edited = text.replace(",2.25,", f",{cell},")
    (victim / "flows.csv").write_text(edited)
    only_damage(victim, "flows.csv")


def test_a_failed_point_may_lack_goodput(store: Store) -> None:
    put(store, spec_of(), result_of([float("nan")], Status.FAILED, "no flow came up"))
    assert [point.status for point in store.read().points] == [Status.FAILED]


@pytest.mark.parametrize("file", ["run.json", "flows.csv", "ports.csv", "samples/goodput.csv.gz"])
def test_a_missing_file_and_a_folder_in_its_place(victim: Path, file: str) -> None:
    (victim / file).unlink()
    assert f"{victim / file}: No such file" in str(scan(victim.parent).broken[0])
    (victim / file).mkdir()
    assert str(victim / file) in str(scan(victim.parent).broken[0])


def test_columns_of_another_version(victim: Path) -> None:
    text = (victim / "ports.csv").read_text()
    (victim / "ports.csv").write_text(text.replace("drops", "lossy", 1))
    promise(victim, "ports.csv")
    with pytest.raises(StoreError, match=r"ports\.csv: its columns are"):
        list(load_point(victim).ports)


def test_a_missing_sample_is_named_and_the_point_usable_and_run_again(victim: Path) -> None:
    sample_path(victim, "goodput").unlink()
    found = scan(victim.parent)
    assert len(found.points) == 2
    (error,) = found.broken
    assert str(sample_path(victim, "goodput")) in str(error)
    assert {point.path: point.finished for point in found.points}[victim] is False
    assert sum(point.finished for point in found.points) == 1


def test_a_damaged_sample_costs_itself_alone(victim: Path) -> None:
    file = sample_path(victim, "goodput")
    file.write_bytes(file.read_bytes()[:-9])
    point = load_point(victim)
    assert len(point.sample("remarks")) == 1
    with pytest.raises(StoreError, match=re.escape(str(file))):
        point.sample("goodput")
    with pytest.raises(StoreError, match="no samples called queues; it has: goodput, remarks"):
        point.sample("queues")


@pytest.mark.parametrize("column", SAMPLE_COLUMNS["goodput"])
def test_a_sample_without_a_required_column(victim: Path, column: str) -> None:
    point = load_point(victim)
    table = point.sample("goodput")
    rest = Table({name: values for name, values in table.columns.items() if name != column})
    sample_path(victim, "goodput").write_bytes(stored_bytes(rest))
    promise(victim, "samples/goodput.csv.gz")
    point = load_point(victim)
    with pytest.raises(StoreError, match=rf"goodput\.csv\.gz: it has no column {column}"):
        point.sample("goodput")


def test_copies_do_not_count_twice(victim: Path) -> None:
    copy = victim.with_name(f"copy-of-{victim.name}")
    victim.rename(copy)
    assert f"it is the result of {victim.name}" in only_damage(copy, "run.json")


def test_many_alike_are_one_line_and_few_are_named(store: Store) -> None:
    for seed in range(1, 31):
        path = put(store, spec_of(seed=seed), result_of([1.0])).path
        if seed <= 20:
            text = (path / "run.json").read_text()
            (path / "run.json").write_text(text.replace(f'"schema": {SCHEMA}', '"schema": 2'))
        elif seed <= 20 + MAX_NAMED:
            (path / "ports.csv").unlink()
    found = store.read()
    older, *others = map(str, found.broken)
    assert f"reading {store.directory}: 20 points have a run.json that cannot be used: " in older
    assert f"its format is number 2, this refabric reads {SCHEMA}" in older
    assert len(others) == MAX_NAMED
    assert all("ports.csv: No such file" in line for line in others)
    assert len(found.points) == 10 - MAX_NAMED


def test_a_folder_that_is_a_file_is_the_users_choice(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    for path in (tmp_path / "results", tmp_path / "results" / EXPERIMENT):
        with pytest.raises(UsageError, match=r"reading .*: Not a directory; .*--results DIR"):
            scan(path)
