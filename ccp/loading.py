"""Make an algorithm from its name (`ccp:reno`), or from the text of a user's file."""

from __future__ import annotations

import importlib
import inspect
import linecache
import os
import sys
import traceback
import types
from collections.abc import Mapping
from pathlib import Path

from ccp import pyportus
from ccp.algorithm import Algorithm
from ccp.names import PREFIX, SHIPPED, SUFFIX
from ccp.portus import PortusAlgorithm
from ccp.programs import EMPTY, Programs, all_compiled, compiled, only
from common import files
from common.errors import UsageError
from common.text import one_line

MAX_FILE_BYTES = 100_000
MAX_SHOWN = 500
"""Characters of an error of the user's file."""
_OWN = "own_algorithm."


def load(cc: str, text: str = "") -> tuple[Algorithm, Programs]:
    """Return the algorithm `cc`, ready to serve flows, and its compiled programs: one of SHIPPED, or the
    user's, whose `text` this function executes.

    Raises UsageError that names the file and, where it is known, the line.
    """
    with pyportus.importable() as started:
        module = _of_text(cc, text) if cc.endswith(SUFFIX) else _shipped(cc)
        name = vars(module).get("__name__")  # which the file may have deleted
        kinds = [
            kind
            for kind in vars(module).values()
            if inspect.isclass(kind) and kind.__module__ == name
            and issubclass(kind, Algorithm | pyportus.AlgBase)
        ]  # fmt: skip
        try:
            if started:
                kinds = [pyportus.adapted(started[-1])]
            if len(kinds) != 1:
                raise UsageError(
                    f"has {len(kinds)} classes of Algorithm, or of portus.AlgBase; it must define exactly one"
                )
            kind = kinds[0]
            if issubclass(kind, pyportus.AlgBase):
                kind = pyportus.adapted(kind())
            programs = _programs_of(kind)
            return kind(), programs
        except UsageError as error:
            raise UsageError(f"{cc}: {error}") from None
        except (Exception, SystemExit) as error:
            raise UsageError(f"{cc}: making {kinds[0].__name__}() raised {_shown(error)}") from error


def reads_switches(cc: str, text: str = "") -> bool:
    """Return whether a program of `cc` reads what switches write into packets. Raises UsageError."""
    return any(program.reads_switches for program in load(cc, text)[1].programs)


def _programs_of(kind: type[Algorithm]) -> Programs:
    """Return the compiled programs of a class, whose attributes may be anything in a user's file.

    An agent of portus has none: it installs some when it is started.
    """
    if issubclass(kind, PortusAlgorithm):
        _check_command(kind.command)
        return only(EMPTY)
    text: object = kind.program
    texts: object = kind.programs
    if not isinstance(text, str):
        raise UsageError(f"`program` must be text, not {type(text).__name__}")
    if not (isinstance(texts, Mapping) and all(isinstance(each, str) for each in (*texts, *texts.values()))):
        raise UsageError("`programs` must be a dictionary with a name and a text for each program")
    if text and texts:
        raise UsageError("it has both `program` and `programs`; give one of them")
    return all_compiled(texts) if texts else only(compiled(text))


def _check_command(command: object) -> None:
    if not isinstance(command, (tuple, list)) or not all(isinstance(each, str) for each in command):
        raise UsageError("command must be a tuple of texts, as ('/usr/bin/agent', '--option')")
    program = command[0] if command else ""
    if not (program.startswith("/") and program.isprintable() and os.access(program, os.X_OK)):
        shown = one_line(program)[:MAX_SHOWN]
        raise UsageError(f"command must begin with the absolute path of a program, not '{shown}'")


def text_of(path: Path) -> str:
    """Return the text of a user's file. Raises UsageError."""
    return files.text_of(f"algorithm {path}", path, MAX_FILE_BYTES)


def _shipped(cc: str) -> types.ModuleType:
    name = cc.removeprefix(PREFIX)
    if name not in SHIPPED:
        raise UsageError(f"{cc}: unknown; choose from: {', '.join(PREFIX + each for each in SHIPPED)}")
    return importlib.import_module(f"ccp.algorithms.{name}")


def _of_text(cc: str, text: str) -> types.ModuleType:
    module = types.ModuleType(f"{_OWN}{cc.removesuffix(SUFFIX)}")
    sys.modules[module.__name__] = module  # dataclasses look for it there
    linecache.cache[cc] = (len(text), None, text.splitlines(keepends=True), cc)  # lines for tracebacks
    try:
        exec(compile(text, cc, "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as error:
        raise UsageError(f"{cc}, line {error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        last = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == cc]
        line = f", line {last[-1]}" if last else ""
        raise UsageError(f"{cc}{line}: running it raised {_shown(error)}") from error
    return module


def _shown(error: BaseException) -> str:
    return one_line(repr(error))[:MAX_SHOWN]
