"""Compile the text of a program in either notation. Pure."""

from __future__ import annotations

import textwrap

from ccp.language import lisp, python_syntax
from ccp.language.generator import generate
from ccp.language.instructions import Program
from ccp.language.tree import ProgramError

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
