"""The programs that an agent installs, by name and by number. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ccp.language.compiler import compiled
from ccp.language.instructions import SIZE, Program
from ccp.language.tree import MAX_NAME, ProgramError
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
