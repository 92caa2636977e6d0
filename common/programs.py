"""The environment in which other programs are started, so that root runs no code of somebody else's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where root's programs are found. A folder of a user must never come before these."""
_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE")


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program of ours, with `changes`.

    Root's programs get a fixed PATH. No program of ours imports Python modules from where a variable says.
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


def import_path() -> list[str]:
    """Return where this process imports from, without the current folder, which anybody may have written."""
    return [entry for entry in sys.path if entry]
