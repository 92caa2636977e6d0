"""Rows of a table held as columns: a sweep of millions of flows fits into memory. Pure.

A row is made when it is asked for. Texts are held as codes, integers in as few bytes as they need, and a
column of one value once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

Row = TypeVar("Row")
Numbers = npt.NDArray[Any]
NO_VALUE = float("nan")
"""Marks a number that was not measured; empty in CSV files."""
MAX_KEPT = 256
"""Rows of a table as short as this are kept once they are made."""
_AT_ONCE = 1024
_MAX_CODES = 256
_INTEGERS = (np.int8, np.int16, np.int32)


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one field: `numbers`, or if there are `choices`, the place of each value in them."""

    numbers: Numbers
    choices: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, values: Sequence[Any] | Numbers) -> Column:
        """Return the column of these values, at least one: all integers, all floats or all texts."""
        if isinstance(values[0], str):
            return cls._coded(values)
        numbers = np.array(values)
        return cls(_narrow(numbers) if numbers.dtype.kind == "i" else numbers)

    @classmethod
    def constant_of(cls, value: Any) -> Column:
        """Return the column of rows that all have this value."""
        return cls(np.zeros(0, np.uint8), (value,))

    @classmethod
    def _coded(cls, values: Sequence[Any] | Numbers) -> Column:
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
        codes = np.fromiter(map(places.__getitem__, values), np.int64, len(values))
        return cls(codes.astype(np.uint8) if len(places) <= _MAX_CODES else _narrow(codes), tuple(places))

    @property
    def constant(self) -> bool:
        """Whether all rows have one value; then `numbers` is empty."""
        return self.choices is not None and len(self.choices) == 1

    def array(self, rows: int) -> Numbers:
        """Return all values: integers of 64 bits, floats, or texts as an array of objects."""
        if self.choices is None:
            return self.numbers.astype(np.int64) if self.numbers.dtype.kind == "i" else self.numbers
        choices = np.array(self.choices, dtype=object if isinstance(self.choices[0], str) else None)
        return np.full(rows, choices[0], choices.dtype) if self.constant else choices[self.numbers]

    def distinct(self) -> set[Any]:
        """Return the values that any row has."""
        if self.choices is None or self.constant:
            return set(self.choices or self.numbers.tolist())
        return {self.choices[code] for code in np.unique(self.numbers).tolist()}

    def values(self, start: int, stop: int) -> list[Any]:
        """Return the Python values of the rows from `start` to `stop`."""
        if self.choices is not None:
            if self.constant:
                only = self.choices[0]
                return [NO_VALUE if only != only else only] * (stop - start)  # noqa: PLR0124
            return [self.choices[code] for code in self.numbers[start:stop].tolist()]
        part = self.numbers[start:stop]
        found: list[Any] = part.tolist()
        if part.dtype.kind == "f" and np.isnan(part).any():
            return [NO_VALUE if math.isnan(value) else value for value in found]
        return found

    def take(self, chosen: Numbers) -> Column:
        """Return the column of the rows at these places."""
        return self if self.constant else Column(self.numbers[chosen], self.choices)


def _narrow(numbers: Numbers) -> Numbers:
    """Return the integers in as few bytes as they fit into."""
    low, high = int(numbers.min()), int(numbers.max())
    fitting = (kind for kind in _INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return numbers.astype(next(fitting, np.int64))


class RowTable(Sequence[Row], Generic[Row]):
    """Rows of the dataclass `kind`; equal to any sequence of equal rows."""

    def __init__(self, kind: type[Row], rows: int, columns: Mapping[str, Column]) -> None:
        self.kind, self._rows, self._columns = kind, rows, columns

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns, in the order of the fields of a row."""
        return self._columns

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self._few) if self._rows <= MAX_KEPT else self._made()

    def _made(self) -> Iterator[Row]:
        for start in range(0, self._rows, _AT_ONCE):
            stop = min(start + _AT_ONCE, self._rows)
            yield from map(self.kind, *(column.values(start, stop) for column in self.columns.values()))

    @functools.cached_property
    def _few(self) -> tuple[Row, ...]:
        return tuple(self._made())

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return self.take(np.arange(self._rows)[index])
        place = range(self._rows)[index]
        if self._rows <= MAX_KEPT:
            return self._few[place]
        return self.kind(*(column.values(place, place + 1)[0] for column in self.columns.values()))

    def take(self, chosen: Numbers) -> RowTable[Row]:
        """Return the rows at these places, in their order."""
        columns = {name: column.take(chosen) for name, column in self.columns.items()}
        return RowTable(self.kind, len(chosen), columns)

    def array(self, name: str) -> Numbers:
        """Return the values of one field."""
        return self.columns[name].array(self._rows) if self._rows else np.zeros(0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the rows that were made."""
        return RowTable, (self.kind, self._rows, self.columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._rows} rows of {self.kind.__name__}>"


def array(rows: Iterable[Any], name: str) -> Numbers:
    """Return the values of one field of rows, held as a table or not."""
    if isinstance(rows, RowTable):
        return rows.array(name)
    return np.array([getattr(row, name) for row in rows])


def chosen(rows: Sequence[Row], places: Numbers) -> Sequence[Row]:
    """Return the rows at these places, in their order."""
    return rows.take(places) if isinstance(rows, RowTable) else tuple(rows[place] for place in places)


def distinct(rows: Iterable[Any], name: str) -> set[Any]:
    """Return the values that a field has in any row."""
    if isinstance(rows, RowTable) and len(rows):
        return rows.columns[name].distinct()
    return {getattr(row, name) for row in rows}
