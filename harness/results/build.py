"""The build of refabric: two machines give the same result only if everything that affects it is the same."""

from __future__ import annotations

import contextlib
import hashlib
import platform
from collections.abc import Container, Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from common.errors import HostUnfitError
from engines.provenance import ROOT, revision
from fabric import _core

DECIDING = (
    "common", "fabric", "topos", "controllers", "workloads", "ccp", "model", "analysis", "engines", "harness",
    "experiments",
)  # fmt: skip
"""Packages whose Python files affect a result."""
NOT_DECIDING = ("setup", "plots", "refabric")
"""Packages that install refabric, draw stored results, or pass commands on. A package must be in one of the
two lists."""


@dataclass(frozen=True)
class Build:
    """What must be the same on all machines. Field names are the names in messages. `revision` is shown and
    not compared: another revision may have the same code."""

    code: str
    core: str
    python: str
    numpy: str
    dask: str
    revision: str

    def difference(self, other: Build) -> str:
        """Describe what differs, e.g. `Python 3.11 here, 3.13 there`; empty if nothing does."""
        found = [
            _words(field.name, getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
            if field.name != "revision" and getattr(self, field.name) != getattr(other, field.name)
        ]
        if found and self.revision != other.revision:
            found.insert(0, f"revision {self.revision} here, {other.revision} there")
        return "; ".join(found)


def _words(name: str, here: str, there: str) -> str:
    if name == "code":
        return "its Python files differ"
    if name == "core":
        return "its C++ core was built from other sources"
    return f"{name.capitalize()} {here} here, {there} there"


class OneBuild:
    """The code of this clone when a sweep begins. Guests, emulations and new workers import it again for each
    point, so a change in between would mix two builds in one table."""

    def __init__(self) -> None:
        self._stamps = _stamps()
        self._digest = _code()

    def check(self) -> None:
        """Raise HostUnfitError if the code has changed. Without a change it takes as long as a look at the
        files' times."""
        stamps = _stamps()
        if stamps == self._stamps:
            return
        if _code() != self._digest:
            first, *others = sorted({name for name, _ in stamps ^ self._stamps})
            raise HostUnfitError(
                f"refabric's code has changed since this run began ({first}"
                f"{' and other files' if others else ''}), and one run is of one build: the same command "
                "continues with the new code"
            )
        self._stamps = stamps


def _files() -> list[Path]:
    python = (path for folder in DECIDING for path in (ROOT / folder).rglob("*.py"))
    return [*python, Path(_core.__file__)]


def _stamps() -> frozenset[tuple[str, tuple[int, int]]]:
    """Return name, time of change and size of each file of code. One that vanishes meanwhile is left out."""
    found = []
    for path in _files():
        with contextlib.suppress(FileNotFoundError):
            about = path.stat()
            found.append((path.name, (about.st_mtime_ns, about.st_size)))
    return frozenset(found)


def _code() -> str:
    core = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    return core + digest_of(DECIDING, {".py"})


def digest_of(packages: Iterable[str], suffixes: Container[str]) -> str:
    """Return a digest of the names and contents of these packages' files with these suffixes."""
    digest = hashlib.sha256()
    for folder in packages:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes:
                digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def build() -> Build:
    """Return the build of this machine from the files as they are now, uncommitted edits included."""
    import importlib.metadata  # noqa: PLC0415 -- most processes never need it

    python = ".".join(platform.python_version_tuple()[:2])
    dask = importlib.metadata.version("distributed")
    return Build(digest_of(DECIDING, {".py"}), _core.SOURCES, python, np.__version__, dask, revision())
