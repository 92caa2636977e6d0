"""The syntax tree of both notations of the language: declarations and events. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ccp.language.instructions import Op
from common.errors import UsageError

MAX_DEPTH = 50
"""Operations inside each other: more than the intermediate results allow, less than Python's stack."""
MAX_NAME = 64
"""Characters of a name."""


@dataclass(frozen=True)
class Place:
    """A place in the program's text, counted from 1."""

    line: int
    column: int

    def error(self, what: str) -> ProgramError:
        """Return the error with this place."""
        return ProgramError(f"program, line {self.line}, column {self.column}: {what}")

    def name(self, text: str) -> str:
        """Return the name. Raises ProgramError for one that messages cannot quote."""
        if not 1 <= len(text) <= MAX_NAME or not text.isprintable():
            raise self.error(f"a name has 1 to {MAX_NAME} printable characters")
        return text

    def too_deep(self) -> ProgramError:
        """Return the error of an expression here with too many operations inside each other."""
        return self.error(
            f"more than {MAX_DEPTH} operations inside each other; split the expression into assignments"
        )


class ProgramError(UsageError):
    """A program of the datapath is wrong; the message has the line and the column."""


@dataclass(frozen=True)
class Name:
    text: str
    at: Place


@dataclass(frozen=True)
class Number:
    value: int
    at: Place


@dataclass(frozen=True)
class Operation:
    """`left op right`. EWMA, IF and NOTIF also read or keep what they are assigned to."""

    op: Op
    left: Expression
    right: Expression
    at: Place


@dataclass(frozen=True)
class Choice:
    """`then` where `condition` is not 0, else `otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression
    at: Place


Expression = Name | Number | Operation | Choice
ONTO_TARGET = frozenset({Op.EWMA, Op.IF, Op.NOTIF})
"""Operations that must be assigned to a variable."""


@dataclass(frozen=True)
class Declaration:
    """A variable with its initial value. `report`: a field of the report, otherwise a control variable."""

    name: str
    report: bool
    volatile: bool
    initial: int
    at: Place


@dataclass(frozen=True)
class Assignment:
    target: Name
    value: Expression


@dataclass(frozen=True)
class Event:
    """What happens when `condition` is not 0. The events after it run only if it falls through."""

    condition: Expression
    body: tuple[Assignment, ...]


@dataclass(frozen=True)
class Source:
    declarations: tuple[Declaration, ...]
    events: tuple[Event, ...]
