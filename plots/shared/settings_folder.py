"""Where matplotlib keeps its settings and its list of fonts while charts are drawn."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_VARIABLE = "MPLCONFIGDIR"
"""Read when matplotlib is first imported."""


@contextlib.contextmanager
def settings_folder() -> Iterator[None]:
    """Give matplotlib a temporary folder if the user has no home that can be written to.

    Without it, each process that draws makes a folder of its own, and a forked one leaves it behind.
    """
    if _VARIABLE in os.environ or _matplotlib_can_write():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="refabric-charts-") as folder:
        os.environ[_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[_VARIABLE]


def _matplotlib_can_write() -> bool:
    """Whether it can make its folders of settings and of lists where the XDG base directories are."""
    try:
        home = Path.home()
    except RuntimeError:  # neither HOME nor a record of this user
        return False
    bases = (("XDG_CONFIG_HOME", home / ".config"), ("XDG_CACHE_HOME", home / ".cache"))
    return all(_can_be_made(Path(os.environ.get(name) or usual)) for name, usual in bases)


def _can_be_made(folder: Path) -> bool:
    try:
        there = next(path for path in (folder, *folder.parents) if path.exists())
    except OSError:  # a folder on the way cannot be searched
        return False
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)
