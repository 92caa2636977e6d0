"""CSV tables of the store: rows of flows and ports, and samples, to bytes and back without loss.

run.json has the length and the digest of every table's text (`Content`), so a table is either the one that
was written or an error: its parser has no damage to look for. pyarrow parses it, which takes 1.2 s of CPU
time for a million flows, where Python's csv takes 9.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import errno
import functools
import gzip
import hashlib
import io
import itertools
import operator
import os
import re
import typing
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar

import msgspec
import numpy as np

from common import files
from common.errors import StoreError
from common.text import one_line
from model.result import NO_VALUE, Column, RowTable, Table

Row = TypeVar("Row")
Cell = float | int | str
AGAIN = "run the experiment again to repeat this point"
REMOVE = f"remove that file and {AGAIN}"
"""What to do about a file that looked whole when the run began."""
NOT_ALLOWED = "read it as the user who owns it, or with sudo"


class UnreadableError(StoreError):
    """The file `path` cannot be used because of `what`; `advice` says what to do."""

    def __init__(self, path: Path, what: str, advice: str = AGAIN) -> None:
        super().__init__(f"reading {one_line(str(path))}: {what}; {advice}")
        self.path, self.what, self.advice = path, what, advice

    def __reduce__(self) -> tuple[Any, ...]:
        return UnreadableError, (self.path, self.what, self.advice)

    @classmethod
    def of(cls, path: Path, error: Exception, advice: str = AGAIN) -> UnreadableError:
        """Return the error for an exception raised by opening or decoding `path`."""
        if isinstance(error, PermissionError):
            return cls(path, "Permission denied", NOT_ALLOWED)
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            return cls(path, "it is a symbolic link, which is not followed", "put the file itself there")
        words = error.strerror if isinstance(error, OSError) else ""
        return cls(path, words or str(error) or "it cannot be read", advice)

    @property
    def kind(self) -> tuple[str, str, str]:
        """Equal for the same damage in files of the same name; numbers in the message do not count."""
        return self.path.name, re.sub(r"[\d.]+", "", self.what), self.advice


MAX_BYTES = 1 << 30
"""Longest text of a table."""
LARGE_BYTES = 64 << 20
MAX_RATIO = 50
"""Bytes that a compressed byte may become, besides SMALL_BYTES. Samples compress to a tenth or more, a file
that was made for it to a thousandth."""
SMALL_BYTES = 8 << 20
MAX_WORDS = 200
NO_NUMBER = ""
"""A float that was not measured, in tables of dataclass rows; sample tables have `nan`."""


@dataclass(frozen=True)
class Content:
    """What the text of a table is: its rows without the header, its bytes before compression, and its
    SHA-256."""

    rows: Annotated[int, msgspec.Meta(ge=0)]
    size_bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str

    @classmethod
    def of(cls, rows: int, text: bytes) -> Content:
        return cls(rows, len(text), hashlib.sha256(text).hexdigest())


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
    cells = map(operator.attrgetter(*names), rows)
    # Only NaN differs from itself. Millions of flows have 27 cells each: `math.isnan` would double the time.
    shown = ([NO_NUMBER if cell != cell else cell for cell in row] for row in cells)  # noqa: PLR0124
    return csv_bytes(names, shown)


def table_bytes(table: Table) -> bytes:
    """Return a sample table as CSV."""
    return csv_bytes(list(table.columns), table.rows())


def packed(text: bytes) -> bytes:
    """Return the text compressed. Equal texts give equal bytes: no time and no name inside."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0, compresslevel=6) as file:
        file.write(text)
    return buffer.getvalue()


def check(path: Path, content: Content, written_ns: int) -> None:
    """Raise UnreadableError for a file that is not there or has another length than was written, and for an
    edited one: what was changed after `written_ns`, when run.json was, is read to know.

    Reading all tables of 822 points would take 2 s.
    """
    try:
        with files.open_regular(path) as stored:
            about = os.fstat(stored.fileno())
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    _check_length(path, about.st_size, content)
    if about.st_ctime_ns > written_ns:
        _text(path, content, AGAIN)


def _check_length(path: Path, size_bytes: int, content: Content) -> None:
    if content.size_bytes > MAX_BYTES:
        raise UnreadableError(path, f"run.json promises {content.size_bytes >> 20} MiB, which no table has")
    if path.suffix != ".gz":
        if size_bytes != content.size_bytes:
            what = f"it has {size_bytes} bytes where run.json promises {content.size_bytes}"
            raise UnreadableError(path, f"{what}, the file is truncated or edited")
    elif content.size_bytes > SMALL_BYTES + MAX_RATIO * size_bytes:
        raise UnreadableError(
            path, f"{size_bytes >> 10} KiB of it are {content.size_bytes >> 10} KiB unpacked, unlike samples"
        )


def _text(path: Path, content: Content, advice: str = REMOVE) -> bytes:
    """Return the text of a table as it was written. Raises UnreadableError for any other.

    A large one is first read without being kept: a sparse file of a few kilobytes may have a gigabyte.
    """
    text, found = b"", content
    try:
        with files.open_regular(path) as stored:
            _check_length(path, os.fstat(stored.fileno()).st_size, content)
            is_packed = path.suffix == ".gz"
            with gzip.GzipFile(fileobj=stored) if is_packed else contextlib.nullcontext(stored) as file:
                if content.size_bytes > LARGE_BYTES:
                    found = _content(file, content)
                    file.seek(0)
                if found == content:
                    text = file.read(content.size_bytes + 1)
                    found = Content.of(content.rows, text)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableError.of(path, error, advice) from error
    if found != content:
        what = "it is not what run.json promises, the file is truncated or edited"
        raise UnreadableError(path, what, advice)
    return text


def _content(file: gzip.GzipFile | BinaryIO, promised: Content) -> Content:
    """Return what the file has, up to one byte more than promised."""
    digest, size_bytes = hashlib.sha256(), 0
    while size_bytes <= promised.size_bytes and (block := file.read(1 << 20)):
        digest.update(block)
        size_bytes += len(block)
    return Content(promised.rows, size_bytes, digest.hexdigest())


def _parsed(path: Path, text: bytes, rows: int, types: Mapping[str, Any], missing: str) -> Any:
    """Return a text as a table of pyarrow's; `missing` is the text of a number that there is not.

    Raises UnreadableError for a text that refabric never writes: anybody may have made the folder.
    """
    import pyarrow  # noqa: PLC0415 -- most commands read no table
    from pyarrow import csv as arrow_csv  # noqa: PLC0415

    try:
        table = arrow_csv.read_csv(
            pyarrow.py_buffer(text),
            # A process that read a damaged file on several threads has been seen to abort at its end.
            read_options=arrow_csv.ReadOptions(use_threads=False),
            convert_options=arrow_csv.ConvertOptions(column_types=types, null_values=[missing]),
        )
        if table.num_rows != rows or len(set(table.column_names)) != table.num_columns:
            raise ValueError(f"it has {table.num_rows} rows where run.json promises {rows}")
        return table.unify_dictionaries().combine_chunks()
    except (ValueError, pyarrow.ArrowException) as error:
        raise UnreadableError(path, f"{' '.join(str(error).split())[:MAX_WORDS]}; it was edited") from error


def read_rows(path: Path, kind: type[Row], content: Content) -> RowTable[Row]:
    """Read what `rows_bytes` wrote. Raises UnreadableError if it is missing, damaged or has other columns."""
    import pyarrow  # noqa: PLC0415

    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    types = {int: pyarrow.int64(), float: pyarrow.float64(), str: text}
    hints = typing.get_type_hints(kind)
    asked = {name: types[of] for name, of in hints.items()}
    table = _parsed(path, _text(path, content), content.rows, asked, NO_NUMBER)
    if table.column_names != list(hints):
        names = ",".join(table.column_names)[:MAX_WORDS]
        raise UnreadableError(path, f"its columns are {names}, not {','.join(hints)}; it was edited")
    try:
        columns = {name: _column(table[name], of) for name, of in hints.items()} if content.rows else {}
    except ValueError as error:
        raise UnreadableError(path, f"{error}; it was edited") from error
    return RowTable(kind, content.rows, columns)


def _column(values: Any, kind: type[Any]) -> Column:
    """Return a column of pyarrow's as rows keep it. Raises ValueError for what refabric does not write."""
    if kind is str:
        coded = values.chunk(0)
        choices = tuple(coded.dictionary.to_pylist())
        if coded.null_count or not all(map(str.isprintable, choices)):
            raise ValueError("it has a text that refabric does not write")
        return Column.coded(coded.indices.to_numpy(), choices)
    if kind is int and values.null_count:
        raise ValueError("it lacks an integer")
    numbers = values.to_numpy()
    if np.isinf(numbers).any():
        raise ValueError("it has an infinite number")
    if (numbers == numbers[0]).all():
        return Column.constant_of(numbers[0].item())
    return Column.constant_of(NO_VALUE) if np.isnan(numbers).all() else Column.of(numbers)


class StoredRows(RowTable[Row]):
    """The rows of a stored table. It is read when they are asked for, and raises UnreadableError then."""

    def __init__(self, path: Path, kind: type[Row], content: Content) -> None:
        super().__init__(kind, content.rows, {})
        self._path, self._content = path, content

    @functools.cached_property
    def columns(self) -> Mapping[str, Column]:
        return read_rows(self._path, self.kind, self._content).columns

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, StoredRows) and self._content == other._content
        return same or super().__eq__(other)

    __hash__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredRows, (self._path, self.kind, self._content)


def read_table(path: Path, content: Content) -> Table:
    """Read what `table_bytes` wrote. The first cell of a column decides its type: integer, float or text.

    Raises UnreadableError.
    """
    text = _text(path, content)
    try:
        head = io.StringIO(text[:_HEAD_BYTES].decode(errors="replace"), newline="")
        names, *first = itertools.islice(csv.reader(head, strict=True), 2)
    except (ValueError, csv.Error) as error:
        raise UnreadableError(path, f"it has no header ({error}); it was edited") from error
    if not first and not content.rows:
        return Table.from_rows(names, ())
    types = {name: _type_of(cell) for name, cell in zip(names, first[0] if first else (), strict=False)}
    table = _parsed(path, text, content.rows, types, "nan")
    columns = {name: table[name].to_numpy() for name in table.column_names}
    for name, column in columns.items():
        if column.dtype.kind == "f" and np.isinf(column).any():
            raise UnreadableError(path, f"column {name} has an infinite number; it was edited")
    return Table({n: c.astype(str) if c.dtype.kind == "O" else c for n, c in columns.items()})


_HEAD_BYTES = 1 << 16


def _type_of(cell: str) -> Any:
    import pyarrow  # noqa: PLC0415

    for kind, of in ((int, pyarrow.int64()), (float, pyarrow.float64())):
        with contextlib.suppress(ValueError):
            kind(cell)
            return of
    return pyarrow.string()
