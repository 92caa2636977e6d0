"""CSV tables of the store: dataclass rows and sample tables, to bytes and back, exactly."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import io
import typing
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from engines.result import Table
from fabric.errors import StoreError

Row = TypeVar("Row")
Cell = float | int | str
AGAIN = "run the experiment again to repeat this point"


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
    return csv_bytes(names, ([getattr(row, name) for name in names] for row in rows))


def table_bytes(table: Table) -> bytes:
    """A sample table as gzipped CSV; the same table gives the same bytes (no time, no name inside)."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0, compresslevel=6) as file:
        file.write(csv_bytes(table.columns, table.rows))
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
    converters = list(hints.values())
    try:
        return tuple(kind(*(to(cell) for to, cell in zip(converters, line, strict=True))) for line in lines)
    except ValueError as error:
        raise StoreError(f"reading {path}: {error}; {AGAIN}") from error


def read_table(path: Path, expected: int) -> Table:
    """Inverse of `table_bytes`; a cell is an int, else a float, else text. Raises StoreError."""
    columns, lines = _read(path, expected)
    return Table(tuple(columns), [[_cell(cell) for cell in line] for line in lines])


def _read(path: Path, expected: int) -> tuple[list[str], list[list[str]]]:
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        header, *lines = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
    except (OSError, EOFError, ValueError, csv.Error) as error:
        what = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        what = what or "it cannot be read"
        raise StoreError(f"reading {path}: {what}; {AGAIN}") from error
    if len(lines) != expected or any(len(line) != len(header) for line in lines):
        raise StoreError(
            f"reading {path}: {len(lines)} whole rows where run.json promises {expected}, "
            f"the file is truncated or edited; {AGAIN}"
        )
    return header, lines


def _cell(text: str) -> Cell:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
