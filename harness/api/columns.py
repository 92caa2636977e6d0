"""Tables of results as numpy arrays, and as pandas frames where pandas is installed."""

from __future__ import annotations

import dataclasses
import html
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from common.errors import UsageError

Column = npt.NDArray[Any]
SHOWN_ROWS = 10
NO_PANDAS = "pandas is not installed: run `pip install pandas`, or use the arrays themselves"


class Columns(Mapping[str, Column]):
    """Named columns of equal length: `flows["goodput_mbps"].mean()`.

    `len(columns)` counts columns, as a mapping does; `columns.rows` counts rows.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._columns = dict(columns)

    @classmethod
    def of(cls, kind: type[Any], rows: Sequence[Any]) -> Columns:
        """Return the fields of dataclass rows as columns; without rows every column is empty."""
        names = [field.name for field in dataclasses.fields(kind)]
        return cls({name: np.array([getattr(row, name) for row in rows]) for name in names})

    def __getitem__(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"there is no column {name!r}: choose one of {', '.join(self._columns)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame. Raises UsageError if pandas is not installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise UsageError(NO_PANDAS) from error
        return pandas.DataFrame(self._columns)

    def __repr__(self) -> str:
        return f"Columns({self.rows} rows: {', '.join(self._columns)})"

    def _repr_html_(self) -> str:
        """Return the first rows as a table, for notebooks."""
        rows = zip(*(column[:SHOWN_ROWS].tolist() for column in self._columns.values()), strict=True)
        more = self.rows - SHOWN_ROWS
        note = f"<p>and {more} more rows</p>" if more > 0 else ""
        return html_table(list(self._columns), rows) + note


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table of escaped texts."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return html.escape("" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value))
