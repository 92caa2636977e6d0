"""Tables of rows held as columns: equal to the rows that they were made from, and much smaller."""

from __future__ import annotations

import dataclasses
import gc
import math
import pickle
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from harness.results import tables
from model.result import (
    MAX_KEPT,
    NO_VALUE,
    UDP,
    Column,
    FlowRow,
    RowTable,
    array,
    chosen,
    distinct,
    under_test,
)
from tests.support.chart_points import flow_row

SIZES = (0, 1, MAX_KEPT, MAX_KEPT + 1, 3000)


def flow(number: int) -> FlowRow:
    """Return a transfer; every third has not ended."""
    return dataclasses.replace(
        flow_row(number),
        src=f"h{number % 300}",
        goodput_mbps=number / 7,
        size_bytes=1000 * number,
        start_s=number / 1000 - 0.5,
        completed_s=NO_VALUE if number % 3 == 0 else 0.1 + number / 3,
    )


def table_of(rows: Sequence[FlowRow]) -> RowTable[FlowRow]:
    names = [field.name for field in dataclasses.fields(FlowRow)]
    columns = {name: Column.of([getattr(row, name) for row in rows]) for name in names} if rows else {}
    return RowTable(FlowRow, len(rows), columns)


@pytest.mark.parametrize("size", SIZES)
def test_a_table_is_its_rows(size: int) -> None:
    rows = tuple(map(flow, range(size)))
    table = table_of(rows)
    assert len(table) == size
    assert bool(table) is bool(rows)
    assert table == rows
    assert rows == table
    assert pickle.loads(pickle.dumps(table)) == rows
    assert tuple(table[1::2]) == rows[1::2]
    for place in {0, size // 2, size - 1} & set(range(size)):
        assert table[place] == rows[place]
        assert table[place - size] == rows[place - size]
    with pytest.raises(IndexError):
        table[size]
    assert table != (*rows, flow(9))


@pytest.mark.parametrize("size", SIZES)
def test_columns_are_the_same_for_rows_and_tables(size: int) -> None:
    rows = tuple(map(flow, range(size)))
    table = table_of(rows)
    for name in ("goodput_mbps", "size_bytes", "completed_s", "src", "subflows_asked"):
        assert np.array_equal(
            array(rows, name).tolist(), array(table, name).tolist(), equal_nan=name[0] == "c"
        )
    assert distinct(table, "src") == distinct(rows, "src")
    places = np.arange(size)[::2]
    assert tuple(chosen(table, places)) == tuple(chosen(rows, places)) == rows[::2]
    assert distinct(chosen(table, places[:1]), "src") == {row.src for row in rows[:1]}


def test_flows_under_test_stay_a_table() -> None:
    table = table_of(tuple(map(flow, range(1000))))
    assert under_test(table) is table
    mixed = table_of([flow(1), dataclasses.replace(flow(2), transport=UDP)])
    assert list(under_test(mixed)) == [flow(1)]


def test_a_flow_read_from_a_file_takes_few_bytes(tmp_path: Path) -> None:
    count = 7500
    rows = [flow(number) for number in range(count)]
    path = tmp_path / "flows.csv"
    path.write_bytes(tables.rows_bytes(FlowRow, rows))
    content = tables.Content.of(count, path.read_bytes())
    assert tables.read_rows(path, FlowRow, content) == rows
    tracemalloc.start()
    try:
        kept = math.inf
        for _ in range(3):  # threads of earlier tests may allocate meanwhile, and garbage counts
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            table = tables.read_rows(path, FlowRow, content)
            gc.collect()
            kept = min(kept, (tracemalloc.get_traced_memory()[0] - before) / count)
        before = tracemalloc.get_traced_memory()[0]
        as_rows = tuple(table)
        one_each = (tracemalloc.get_traced_memory()[0] - before) / count
    finally:
        tracemalloc.stop()
    assert len(as_rows) == count
    assert kept < 100
    assert one_each > 4 * kept
    assert tables.rows_bytes(FlowRow, table) == path.read_bytes()
