"""CSV tables of the store: dataclass rows and sample tables, to bytes and back without loss."""

from __future__ import annotations

import contextlib
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from common import files
from common.errors import StoreError
from common.text import one_line
from model.result import NO_VALUE, Column, RowTable, Table

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
"""Bytes of one row."""
MAX_RATIO = 50
"""Bytes that a compressed byte may become, besides 8 AT_ONCE. Samples compress to a tenth or more, a file
that was made for it to a thousandth."""
MAX_WIDENING = 16
"""How much more memory a column of texts may take than its characters."""
AT_ONCE = 1 << 20
MAX_WORDS = 200
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
    blocks = _blocks(path, expected)
    header = _header(path, next(blocks))
    if header != list(hints):
        raise UnreadableError(
            path,
            f"its columns are {','.join(header)[:MAX_WORDS]}, not {','.join(hints)}; it was written by "
            "another version",
        )
    parts: dict[str, list[tuple[Column, int]]] = {name: [] for name in hints}
    rows, odd = 0, False
    try:
        for block in blocks:
            lines = list(csv.reader(io.StringIO(block, newline=""), strict=True))
            whole = [line for line in lines if len(line) == len(header)]
            rows, odd = rows + len(whole), odd or len(whole) < len(lines)
            if not odd:
                for (name, of), cells in zip(parts.items(), zip(*lines, strict=True), strict=True):
                    of.append((_column(hints[name], cells), len(cells)))
    except (ValueError, csv.Error) as error:
        raise UnreadableError(path, f"{_first_line(error)}; {CUT}") from error
    _check_rows(path, rows, expected)
    if odd:
        raise UnreadableError(path, "it has rows of another length; it was edited")
    return RowTable(kind, rows, {name: _joined(of) for name, of in parts.items()} if rows else {})


def _joined(parts: Sequence[tuple[Column, int]]) -> Column:
    """Return the column of these columns, each with its number of rows, one after the other."""
    first = parts[0][0]
    if len(parts) == 1 or all(of.constant and repr(of.choices) == repr(first.choices) for of, _ in parts):
        return first
    return Column.of(np.concatenate([of.array(rows) for of, rows in parts]))


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


def read_table(path: Path, expected: int) -> Table:
    """Read what `table_bytes` wrote. The first cell of a column decides its type: integer, float or text.

    Raises UnreadableError.
    """
    blocks = _blocks(path, expected)
    names = _header(path, next(blocks))
    kinds: list[tuple[str, type[Any]]] = []
    parts: list[npt.NDArray[Any]] = []
    lines: list[list[str]] = []
    try:
        for block in blocks:
            if not kinds:
                first = next(csv.reader([block.partition("\n")[0]], strict=True))
                kinds = [(name, _kind(cell)) for name, cell in zip(names, first, strict=True)]
            if any(kind is str for _, kind in kinds):  # such tables are rare and small
                lines += filter(None, csv.reader(io.StringIO(block, newline=""), strict=True))
            else:
                parts.append(_numbers(kinds, block, sum(map(len, parts))))
        if parts:
            table = Table({name: np.concatenate([part[name] for part in parts]) for name in names})
        else:
            table = Table(_texts(kinds, lines)) if lines else Table.from_rows(names, ())
    except (ValueError, OverflowError, csv.Error) as error:
        raise UnreadableError(path, f"{_first_line(error)}; {CUT}") from error
    _check_rows(path, len(table), expected)
    infinite = [name for name, column in table.columns.items() if _has_infinity(column)]
    if infinite:
        raise UnreadableError(path, f"column {infinite[0]} has an infinite number; it was edited")
    return table


def _numbers(kinds: Sequence[tuple[str, type[Any]]], block: str, before: int) -> npt.NDArray[Any]:
    """Parse lines of numbers; `before` are the rows of earlier blocks. Raises ValueError, also for a line
    without all cells."""
    of = np.dtype(list(kinds))
    try:
        return np.loadtxt(io.StringIO(block), of, comments=None, delimiter=",", quotechar='"', ndmin=1)
    except ValueError as error:
        words = re.sub(r"(?<=\brow )\d+", lambda found: str(int(found[0]) + before), str(error))
        raise ValueError(words) from error


def _texts(kinds: Sequence[tuple[str, type[Any]]], lines: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the columns of parsed lines. Raises ValueError, also for a line without all cells."""
    columns = {}
    for (name, kind), cells in zip(kinds, zip(*lines, strict=True), strict=True):
        widest = max(map(len, cells))  # each text of an array takes as much as the longest one
        if widest * len(cells) > AT_ONCE + MAX_WIDENING * sum(map(len, cells)):
            raise ValueError(f"column {name} has a text of {widest} characters")
        columns[name] = np.array(cells).astype(kind)
    return columns


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


def _header(path: Path, line: str) -> list[str]:
    """Return the names of the columns. Raises UnreadableError."""
    try:
        if names := next(csv.reader([line], strict=True)):
            return names
    except csv.Error as error:
        raise UnreadableError(path, f"{_first_line(error)}; {CUT}") from error
    raise UnreadableError(path, f"it has no header; {CUT}")


def _blocks(path: Path, expected: int) -> Iterator[str]:
    """Yield the first line of a table of `expected` rows, and then the others, about AT_ONCE bytes at a time.

    So memory and time are in proportion to the bytes of the file, holes and what is compressed included.
    Raises UnreadableError, also for more bytes than so many rows have.
    """
    most, total, left, header = min(MAX_BYTES, (expected + 1) * MAX_LINE), 0, b"", ""
    try:
        with files.open_regular(path) as stored, _unpacked(path, stored) as file:
            while data := file.read(AT_ONCE):
                total += len(data)
                if total > most:
                    words = f"it holds more than {most >> 10} KiB, where run.json promises {expected} rows"
                    raise ValueError(words)
                packed = stored.tell()
                if total > 8 * AT_ONCE + MAX_RATIO * packed:
                    raise ValueError(
                        f"{packed >> 10} KiB of it are {total >> 10} KiB unpacked, unlike samples"
                    )
                block, newline, rest = (left + data).rpartition(b"\n")
                if len(rest) > MAX_LINE:
                    raise ValueError(f"a line has more than {MAX_LINE} bytes")
                text = _decoded(block + newline, total - len(data) - len(left))
                if text and not header:
                    first, end, text = text.partition("\n")
                    header = first + end
                    yield header
                if text:
                    yield text
                left = rest
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise UnreadableError.of(path, error) from error
    if left or not total:
        raise UnreadableError(path, f"{'it ends in the middle of a line' if total else 'it is empty'}; {CUT}")


def _unpacked(path: Path, stored: BinaryIO) -> contextlib.AbstractContextManager[Any]:
    return gzip.GzipFile(fileobj=stored) if path.suffix == ".gz" else contextlib.nullcontext(stored)


def _decoded(data: bytes, before: int) -> str:
    """Return the text of bytes; `before` is their place in the file. Raises ValueError."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text (byte {before + error.start} is not UTF-8)") from error


def _check_rows(path: Path, found: int, expected: int) -> None:
    if found != expected:
        raise UnreadableError(path, f"{found} whole rows where run.json promises {expected}, {CUT}")
