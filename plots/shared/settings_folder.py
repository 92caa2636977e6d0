"""Where matplotlib keeps its settings and its list of fonts while charts are drawn, and which it ignores."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_VARIABLE, _FILE = "MPLCONFIGDIR", "MATPLOTLIBRC"
"""Read when matplotlib is first imported."""


def import_matplotlib() -> None:
    """Import matplotlib without the settings of the user and of the current folder, which it reads first.

    A file `matplotlibrc` there may be anybody's, and may be a pipe. Nobody else can write to `/`.
    """
    if "matplotlib" in sys.modules:  # style.look() takes its defaults
        return
    before = os.environ.get(_FILE)
    os.environ[_FILE] = os.devnull
    try:
        with _in_root_folder():
            importlib.import_module("matplotlib")
    finally:
        del os.environ[_FILE]
        if before is not None:
            os.environ[_FILE] = before


@contextlib.contextmanager
def _in_root_folder() -> Iterator[None]:
    """Make `/` the current folder for the block, unless this user could not return; then matplotlib finds
    nothing in the current folder either."""
    if not os.access(".", os.X_OK):
        yield
        return
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    os.chdir("/")
    try:
        yield
    finally:
        os.fchdir(here)
        os.close(here)


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
