"""How other programs are started: their environment, the imports of this Python, their end."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where root's programs are found."""
_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE")


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program that we start, with `changes`.

    Root's programs get a fixed PATH, and no variable adds folders to Python's import path.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OF_PYTHON}
    if os.geteuid() == 0:
        kept["PATH"] = SYSTEM_PATH
    return {**kept, **(changes or {})}


def python() -> tuple[str, ...]:
    """Return the beginning of a command: this Python, running the program text that follows.

    `-I` keeps it from importing from the current folder or the user's own, and from variables.
    """
    return sys.executable, "-I", "-c"


def ending_with_us() -> tuple[str, ...]:
    """Return the beginning of a command that the kernel kills when the thread that starts it ends.

    A program that sets this itself (prctl(2), PR_SET_PDEATHSIG) may be suspended before it does so, and would
    then never end. setpriv(1) sets it before the program starts. Empty on a system without setpriv(1).
    """
    setpriv = shutil.which("setpriv", path=SYSTEM_PATH)
    return () if setpriv is None else (setpriv, "--pdeathsig", "KILL")


def import_path() -> list[str]:
    """Return where this process imports from, without the current folder, which any user may have written."""
    return [entry for entry in sys.path if entry]
