"""Load the experiment of a user's file, which runs the file.

Only the file that the user names is run. Its folder is not put on the import path, so it cannot import files
beside it, and nothing is imported from the current folder.
"""

from __future__ import annotations

import dataclasses
import os
import stat
import sys
import types
from pathlib import Path

from common.errors import RefabricError, UsageError
from harness.experiment import Experiment
from harness.own.guard import described

SUFFIX = ".py"
MAX_BYTES = 1 << 20
MODULE = "refabric_experiment"


def is_file(name: str) -> bool:
    """Return whether the argument names a file and not a registered experiment."""
    return name.endswith(SUFFIX)


def load(name: str) -> Experiment:
    """Return the one Experiment that the file defines at its top level. Raises UsageError."""
    path = Path(name)
    module = types.ModuleType(f"{MODULE}_{path.stem}")
    module.__file__ = str(path)
    text = _text(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except RefabricError:
        raise
    except Exception as error:
        raise UsageError(f"experiment {described(error, str(path))}") from error
    found = [value for value in vars(module).values() if isinstance(value, Experiment)]
    if len(found) != 1:
        raise UsageError(
            f"experiment {path}: it defines {len(found)} experiments; give it one, e.g. EXPERIMENT = "
            "experiment(...), or begin with `refabric new experiment mine.py`"
        )
    figures = tuple(dataclasses.replace(figure, file=str(path)) for figure in found[0].figures)
    return dataclasses.replace(found[0], figures=figures)


def _text(path: Path) -> str:
    """Return the text of the file. Raises UsageError, also if root would run what another user can write."""
    what = f"experiment {path}"
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise UsageError(f"{what}: it is not a regular file")
            _check_owner(what, about)
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UsageError(f"{what}: it is larger than {MAX_BYTES >> 20} MiB")
        return data.decode()
    except OSError as error:
        raise UsageError(f"{what}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: cannot be read: it is not a text file") from error


def _check_owner(what: str, about: os.stat_result) -> None:
    """Raise UsageError if this process is root's and somebody else may write the file."""
    caller = os.environ.get("SUDO_UID", "0")
    trusted = {0, int(caller) if caller.isdecimal() else 0}
    writable = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if os.geteuid() == 0 and (about.st_uid not in trusted or writable):
        who = "other users may write it" if writable else f"it belongs to user {about.st_uid}"
        raise UsageError(
            f"{what}: root would run it, and {who}; copy it, or chmod go-w, and look into it first"
        )
