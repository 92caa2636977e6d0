"""Programs of an agent: compiled from either notation, by name and by number. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from ccp import lisp, python_syntax
from ccp.language import MAX_NAME, SIZE, Program, ProgramError, generate
from ccp.names import ONLY
from common.errors import UsageError

MAX_PROGRAMS = 16
"""Programs of one agent; CCP_PROGRAMS of fabric/ccp/datapath.h."""
EMPTY = Program((), (), (), (), ())


@dataclass(frozen=True)
class Programs:
    """Programs in the order of their numbers; flows begin with the first."""

    names: tuple[str, ...]
    programs: tuple[Program, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.programs) <= MAX_PROGRAMS:
            raise UsageError(f"an agent has 1 to {MAX_PROGRAMS} programs, not {len(self.programs)}")

    def __getitem__(self, name: str) -> Program:
        return self.programs[self.number(name)]

    def number(self, name: str) -> int:
        """Return the number of the program of this name. Raises ValueError if there is none."""
        if name not in self.names:
            raise ValueError(f"there is no program '{name}'; the programs are: {', '.join(self.names)}")
        return self.names.index(name)

    def packed(self) -> bytes:
        """Return the datapath's table, always MAX_PROGRAMS entries."""
        return b"".join(each.packed() for each in self.programs).ljust(MAX_PROGRAMS * SIZE, b"\0")


def only(program: Program) -> Programs:
    """Return the programs of an agent that has one."""
    return Programs((ONLY,), (program,))


def all_compiled(texts: Mapping[str, str]) -> Programs:
    """Return the programs. Raises ProgramError with the program's name, line and column."""
    found = []
    for name, text in texts.items():
        if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
            raise ProgramError(f"a program's name has 1 to {MAX_NAME} printable characters")
        try:
            found.append(compiled(text))
        except ProgramError as error:
            raise ProgramError(f"program '{name}': {error}") from None
    return Programs(tuple(texts), tuple(found))


MAX_TEXT = 20_000


def compiled(text: str) -> Program:
    """Return the program. One that begins with a parenthesis is in CCP's Lisp, any other in Python's syntax.

    Raises ProgramError with line and column.
    """
    if len(text) > MAX_TEXT:
        raise ProgramError(f"program: {len(text)} characters, at most {MAX_TEXT}")
    notation = lisp if _begins(text).startswith("(") else python_syntax
    return generate(notation.parse(textwrap.dedent(text)))


def _begins(text: str) -> str:
    """Return the first line that has more than a comment."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")
