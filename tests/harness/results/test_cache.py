"""The cache: numbers read off points stand for their flows, until a file, the code or the cache changes."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import StoreError
from harness.results import cache, tables
from harness.results.cache import ResultsCache
from harness.results.store import Store, StoredPoint, scan
from model.result import NO_VALUE, Status
from tests.support.stored_points import put, result_of, spec_of

FLOWS = 4000
SEEDS = range(1, 5)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were read."""
    found: list[str] = []
    really = tables.read_rows

    def counted(path: Path, *more: object) -> object:
        found.append(path.name)
        return really(path, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "read_rows", counted)
    return found


def sweep(store: Store, flows: int = 3) -> list[StoredPoint]:
    return [put(store, spec_of(seed=seed), result_of([seed + n / 7 for n in range(flows)])) for seed in SEEDS]


def test_noted_numbers_are_the_same_and_flows_are_read_once_when_asked_for(
    store: Store, reads: list[str]
) -> None:
    first = sweep(store)
    scan(store.directory).write_cache()
    reads.clear()
    again = scan(store.directory).points
    assert [point.numbers for point in again] == [point.numbers for point in first]
    assert [len(point.flows) for point in again] == [3] * len(again)
    assert reads == []
    assert [*again[0].flows] == [*again[0].flows] == [*first[0].flows]
    assert reads == ["flows.csv"]


def test_memory_of_a_sweep_is_bounded_per_flow(store: Store) -> None:
    """Rows as objects took 600 bytes and more."""
    sweep(store, FLOWS)
    bytes_per_flow = []
    for _ in range(2):
        tracemalloc.start()
        found = scan(store.directory)
        assert all(point.jain for point in found.points)
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        bytes_per_flow.append(kept / (FLOWS * len(SEEDS)))
        found.write_cache()
    assert bytes_per_flow[0] < 100
    assert bytes_per_flow[1] < 15, "nothing but run.json"


def edited_in_place(folder: Path) -> None:
    """Change a digit, and give the file its old times back."""
    flows = next(folder.glob("*/flows.csv"))
    about, text = flows.stat(), flows.read_text()
    with flows.open("r+") as file:
        file.write(re.sub(r",\d\.0,", ",9.0,", text, count=1))
    os.utime(flows, ns=(about.st_atime_ns, about.st_mtime_ns))


def damaged(folder: Path) -> None:
    (folder / cache.NAME).write_text("{")


def of_other_code(folder: Path) -> None:
    data = json.loads((folder / cache.NAME).read_text())
    (folder / cache.NAME).write_text(json.dumps({**data, "code": "another"}))


def of_another_type(folder: Path) -> None:
    data = json.loads((folder / cache.NAME).read_text())
    for seen_and_numbers in data["points"].values():
        seen_and_numbers[1]["drops"] = "many"
    (folder / cache.NAME).write_text(json.dumps(data))


CHANGES = (edited_in_place, damaged, of_other_code, of_another_type)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_after_a_change_the_flows_are_read(
    store: Store, reads: list[str], change: Callable[[Path], None]
) -> None:
    sweep(store)
    scan(store.directory).write_cache()
    change(store.directory)
    reads.clear()
    found = scan(store.directory)
    assert reads.count("flows.csv") == (1 if change is edited_in_place else len(SEEDS))
    assert len(found.broken) == (change is edited_in_place)
    assert len(found.points) + len(found.broken) == len(SEEDS)


def test_a_file_that_is_changed_while_it_is_shown(store: Store) -> None:
    sweep(store)
    scan(store.directory).write_cache()
    point, *_ = scan(store.directory).points
    (point.path / "flows.csv").write_text("")
    with pytest.raises(StoreError, match="it is empty"):
        list(point.flows)


def test_numbers_that_json_lacks_are_not_noted(store: Store) -> None:
    failed = result_of([NO_VALUE], Status.FAILED, "no flow came up")
    put(store, spec_of(), failed)
    scan(store.directory).write_cache()
    assert ResultsCache.read(store.directory).known == {}
    assert [point.status for point in scan(store.directory).points] == [Status.FAILED]
