"""CSV tables of the store: dataclass rows and sample tables, to bytes and back, exactly."""

from __future__ import annotations

import csv
import dataclasses
import functools
import gzip
import io
import math
import typing
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from engines.result import NO_VALUE, Table
from fabric.errors import StoreError

Row = TypeVar("Row")
Cell = float | int | str
AGAIN = "run the experiment again to repeat this point"


NO_NUMBER = ""
"""A float that was not measured, in the tables of dataclass rows; sample tables say `nan`."""


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """A header line and one line a row; floats as Python's shortest exact text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()


def rows_bytes(kind: type[Any], rows: Sequence[Any]) -> bytes:
    """Dataclass rows as CSV, one column a field, in the order of the fields."""
    names = [f.name for f in dataclasses.fields(kind)]
    return csv_bytes(names, ([_shown(getattr(row, name)) for name in names] for row in rows))


def _shown(value: Cell) -> Cell:
    return NO_NUMBER if isinstance(value, float) and math.isnan(value) else value


def _number(text: str) -> float:
    return float(text) if text != NO_NUMBER else NO_VALUE


def table_bytes(table: Table) -> bytes:
    """A sample table as gzipped CSV; the same table gives the same bytes (no time, no name inside)."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0, compresslevel=6) as file:
        file.write(csv_bytes(list(table.columns), table.rows()))
    return buffer.getvalue()


def read_rows(path: Path, kind: type[Row], expected: int) -> tuple[Row, ...]:
    """Inverse of `rows_bytes`. Raises StoreError when missing, truncated or of other columns."""
    hints = typing.get_type_hints(kind)
    columns, lines = _read(path, expected)
    if list(columns) != list(hints):
        raise StoreError(
            f"reading {path}: its columns are {','.join(columns)}, not {','.join(hints)}; "
            f"it was written by another version; {AGAIN}"
        )
    converters = [_number if to is float else to for to in hints.values()]
    try:
        return tuple(kind(*(to(cell) for to, cell in zip(converters, line, strict=True))) for line in lines)
    except ValueError as error:
        raise StoreError(f"reading {path}: {error}; {AGAIN}") from error


def read_table(path: Path, expected: int) -> Table:
    """Inverse of `table_bytes`: a column whose first cell is an integer holds integers, else floats, else
    text. Raises StoreError."""
    text = _text(path)
    header, *lines = text.splitlines() or [""]
    if not lines:
        _check_rows(path, 0, expected)
        return Table.from_rows(header.split(","), ())
    try:
        first = next(csv.reader(lines[:1], strict=True))
        kinds = [(name, _kind(cell)) for name, cell in zip(next(csv.reader([header])), first, strict=True)]
        # Text has no width before it is read: such columns are rare and small.
        load: Callable[..., Any] = functools.partial(
            np.loadtxt, delimiter=",", skiprows=1, quotechar='"', comments=None, ndmin=1
        )
        if any(kind is str for _, kind in kinds):
            columns = load(io.StringIO(text), dtype=str, ndmin=2).T
            arrays = {name: column.astype(kind) for (name, kind), column in zip(kinds, columns, strict=True)}
        else:
            data = load(io.StringIO(text), dtype=np.dtype(kinds))
            arrays = {name: np.ascontiguousarray(data[name]) for name, _ in kinds}
    except (ValueError, csv.Error) as error:
        raise StoreError(f"reading {path}: {error}; the file is truncated or edited; {AGAIN}") from error
    _check_rows(path, len(lines), expected)
    return Table(arrays)


def _kind(cell: str) -> type[int] | type[float] | type[str]:
    for kind in (int, float):
        try:
            kind(cell)
        except ValueError:
            continue
        return kind
    return str


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        what = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise StoreError(f"reading {path}: {what or 'it cannot be read'}; {AGAIN}") from error


def _read(path: Path, expected: int) -> tuple[list[str], list[list[str]]]:
    try:
        header, *lines = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    except (ValueError, csv.Error) as error:
        raise StoreError(f"reading {path}: {error}; {AGAIN}") from error
    whole = [line for line in lines if len(line) == len(header)]
    _check_rows(path, len(whole), expected)
    if len(whole) < len(lines):
        raise StoreError(f"reading {path}: it has rows of another length, it was edited; {AGAIN}")
    return header, lines


def _check_rows(path: Path, found: int, expected: int) -> None:
    if found != expected:
        raise StoreError(
            f"reading {path}: {found} whole rows where run.json promises {expected}, "
            f"the file is truncated or edited; {AGAIN}"
        )
