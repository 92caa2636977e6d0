"""Errors of a user's functions, in one line with the line of the file."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from common.errors import RefabricError, UsageError

P = ParamSpec("P")
R = TypeVar("R")


def guarded(
    what: str, function: Callable[P, R], *, written_in: Callable[..., object] | None = None
) -> Callable[P, R]:
    """Return `function` with its errors as UsageErrors that name `what`, the file and the line.

    The file is that of `written_in`, if it is given, because `function` only calls it.
    """
    code = getattr(inspect.unwrap(written_in or function), "__code__", None)
    file = code.co_filename if code else ""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RefabricError:
            raise
        except Exception as error:
            raise UsageError(f"{what}: {described(error, file)}") from error

    return called


def described(error: Exception, file: str) -> str:
    """Return an exception with the last line of `file` that it passed: `mine.py, line 3: NameError: ...`."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}, line {lines[-1]}: {text}" if lines else text
