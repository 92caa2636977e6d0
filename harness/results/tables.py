"""CSV tables of the store: dataclass rows and sample tables, to bytes and back without loss."""

from __future__ import annotations

import csv
import dataclasses
import errno
import functools
import gzip
import io
import math
import re
import typing
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from common import files
from common.errors import StoreError
from common.printable import one_line
from model.result import NO_VALUE, Table
from model.rows import Column, RowTable

Row = TypeVar("Row")
Cell = float | int | str
AGAIN = "run the experiment again to repeat this point"
NOT_ALLOWED = "read it as the user who owns it, or with sudo"
CHANGED = "it was changed while it was shown: run the command again"
CUT = "the file is truncated or edited"


class UnreadableError(StoreError):
    """The file `path` cannot be used because of `what`; `advice` says what to do."""

    def __init__(self, path: Path, what: str, advice: str = AGAIN) -> None:
        super().__init__(f"reading {one_line(str(path))}: {what}; {advice}")
        self.path, self.what, self.advice = path, what, advice

    def __reduce__(self) -> tuple[Any, ...]:
        return UnreadableError, (self.path, self.what, self.advice)

    @classmethod
    def of(cls, path: Path, error: Exception) -> UnreadableError:
        """Return the error for an exception raised by opening or decoding `path`."""
        if isinstance(error, PermissionError):
            return cls(path, "Permission denied", NOT_ALLOWED)
        if isinstance(error, UnicodeDecodeError):
            return cls(path, f"it is not text (byte {error.start} is not UTF-8)")
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            return cls(path, "it is a symbolic link, which is not followed", "put the file itself there")
        words = error.strerror if isinstance(error, OSError) else ""
        return cls(path, words or str(error) or "it cannot be read")

    @property
    def kind(self) -> tuple[str, str, str]:
        """Equal for the same damage in files of the same name; numbers in the message do not count."""
        return self.path.name, re.sub(r"[\d.]+", "", self.what), self.advice


MAX_BYTES = 1 << 30
"""Largest table, compressed and unpacked."""
MAX_LINE = 4096
"""Bytes of one row. Tables of text are few, and take the longest line's memory for each row."""
MAX_WORDS = 200
_BYTES_OF_CHARACTER = 4
_INTEGER_DIGITS = 18
NO_NUMBER = ""
"""A float that was not measured, in tables of dataclass rows; sample tables have `nan`."""


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """Return a header line and one line per row; floats as Python's shortest exact text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()


def rows_bytes(kind: type[Any], rows: Sequence[Any]) -> bytes:
    """Return dataclass rows as CSV: one column per field, in the order of the fields."""
    names = [f.name for f in dataclasses.fields(kind)]
    return csv_bytes(names, ([_shown(getattr(row, name)) for name in names] for row in rows))


def _shown(value: Cell) -> Cell:
    return NO_NUMBER if isinstance(value, float) and math.isnan(value) else value


def _column(to: type[Any], cells: Sequence[str]) -> Column:
    """Parse the cells of one field. Raises ValueError."""
    if cells.count(cells[0]) == len(cells):
        return Column.constant_of(_values(to, cells[:1])[0])
    return Column.of(_values(to, cells))


def _values(to: type[Any], cells: Sequence[str]) -> Sequence[Any]:
    if to is str:
        odd = next((cell for cell in dict.fromkeys(cells) if not cell.isprintable()), None)
        if odd is not None:
            raise ValueError(f"{odd!r} is not a text that refabric writes")
        return cells
    if to is int:
        return list(map(int, cells)) if max(map(len, cells)) <= _INTEGER_DIGITS else _too_large(cells)
    values = [float(cell) if cell != NO_NUMBER else NO_VALUE for cell in cells]
    if not all(map(math.isfinite, values)):
        _check_finite(cells, values)
    return values


def _check_finite(cells: Sequence[str], values: Sequence[float]) -> None:
    for cell, value in zip(cells, values, strict=True):
        if cell != NO_NUMBER and not math.isfinite(value):
            raise ValueError(f"{cell} is not a number that refabric writes")


def _too_large(cells: Sequence[str]) -> NoReturn:
    cell = next(cell for cell in cells if len(cell) > _INTEGER_DIGITS)
    raise ValueError(f"{cell[:_INTEGER_DIGITS]}... is too large for an integer")


def table_bytes(table: Table) -> bytes:
    """Return a sample table as gzipped CSV. Equal tables give equal bytes: no time and no name inside."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0, compresslevel=6) as file:
        file.write(csv_bytes(list(table.columns), table.rows()))
    return buffer.getvalue()


def read_rows(path: Path, kind: type[Row], expected: int) -> RowTable[Row]:
    """Read what `rows_bytes` wrote. Raises UnreadableError if it is missing, cut or has other columns."""
    hints = typing.get_type_hints(kind)
    columns, lines = _read(path, expected)
    if list(columns) != list(hints):
        raise UnreadableError(
            path,
            f"its columns are {','.join(columns)}, not {','.join(hints)}; it was written by another version",
        )
    if not lines:
        return RowTable(kind, 0, {})
    try:
        cells = zip(*lines, strict=True)
        found = {name: _column(hints[name], column) for name, column in zip(hints, cells, strict=True)}
        return RowTable(kind, len(lines), found)
    except ValueError as error:
        raise UnreadableError(path, f"{_first_line(error)}; {CUT}") from error


class StoredRows(RowTable[Row]):
    """The rows of a file that was found good before. It is read when they are asked for."""

    def __init__(self, path: Path, kind: type[Row], rows: int) -> None:
        super().__init__(kind, rows, {})
        self._path = path

    @functools.cached_property
    def columns(self) -> Mapping[str, Column]:
        """The columns. Raises UnreadableError if the file was changed meanwhile."""
        try:
            return read_rows(self._path, self.kind, len(self)).columns
        except UnreadableError as error:
            raise UnreadableError(error.path, error.what, CHANGED) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredRows, (self._path, self.kind, len(self))


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:MAX_WORDS]


def _read(path: Path, expected: int) -> tuple[list[str], list[list[str]]]:
    try:
        header, *lines = csv.reader(io.StringIO(_text(path, expected), newline=""), strict=True)
    except (ValueError, csv.Error) as error:
        raise UnreadableError(path, f"{_first_line(error)}; {CUT}") from error
    whole = [line for line in lines if len(line) == len(header)]
    _check_rows(path, len(whole), expected)
    if len(whole) < len(lines):
        raise UnreadableError(path, "it has rows of another length; it was edited")
    return header, lines


def read_table(path: Path, expected: int) -> Table:
    """Read what `table_bytes` wrote. The first cell of a column decides its type: integer, float or text.

    Raises UnreadableError.
    """
    text = _text(path, expected)
    header, _, body = text.partition("\n")
    try:
        names = next(csv.reader([header], strict=True))
        if not names:
            raise ValueError("it has no header")
        table = Table(_columns(names, body)) if body else Table.from_rows(names, ())
    except (ValueError, OverflowError, csv.Error) as error:
        raise UnreadableError(path, f"{_first_line(error)}; {CUT}") from error
    _check_rows(path, len(table), expected)
    infinite = [name for name, column in table.columns.items() if _has_infinity(column)]
    if infinite:
        raise UnreadableError(path, f"column {infinite[0]} has an infinite number; it was edited")
    return table


def _columns(names: Sequence[str], body: str) -> dict[str, npt.NDArray[Any]]:
    """Parse CSV lines into named columns. Raises ValueError, also for a line without all cells."""
    first = next(csv.reader([body.partition("\n")[0]], strict=True))
    kinds = [(name, _kind(cell)) for name, cell in zip(names, first, strict=True)]
    load: Callable[..., Any] = functools.partial(
        np.loadtxt, io.StringIO(body), delimiter=",", quotechar='"', comments=None
    )
    if any(kind is str for _, kind in kinds):
        # The width of text is not known before it is read. Such columns are rare and small.
        width = max(map(len, body.splitlines()))
        if width * body.count("\n") * len(names) * _BYTES_OF_CHARACTER > MAX_BYTES:
            raise ValueError(f"a line has {width} characters")
        cells = load(dtype=str, ndmin=2).T
        return {name: column.astype(kind) for (name, kind), column in zip(kinds, cells, strict=True)}
    data = load(dtype=np.dtype(kinds), ndmin=1)
    return {name: np.ascontiguousarray(data[name]) for name in names}


def _kind(cell: str) -> type[int] | type[float] | type[str]:
    for kind in (int, float):
        try:
            kind(cell)
        except ValueError:
            continue
        return kind
    return str


def _has_infinity(column: npt.NDArray[Any]) -> bool:
    return column.dtype.kind == "f" and bool(np.isinf(column).any())


def _text(path: Path, expected: int) -> str:
    """Return the text of a table of `expected` rows. Raises UnreadableError, also for more than they take."""
    limit = min(MAX_BYTES, (expected + 1) * MAX_LINE)
    try:
        data = files.read_bytes(path, MAX_BYTES)
        if path.suffix == ".gz":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(limit + 1)
        if len(data) > limit:
            raise ValueError(f"it holds more than {limit >> 10} KiB, where run.json promises {expected} rows")
        text = data.decode()
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UnreadableError.of(path, error) from error
    if not text.endswith("\n"):
        raise UnreadableError(path, f"{'it ends in the middle of a line' if text else 'it is empty'}; {CUT}")
    return text


def _check_rows(path: Path, found: int, expected: int) -> None:
    if found != expected:
        raise UnreadableError(path, f"{found} whole rows where run.json promises {expected}, {CUT}")
