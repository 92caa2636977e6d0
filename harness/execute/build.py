"""Which refabric this is: two machines give one result only where all that decides it is the same on both."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
from dataclasses import dataclass, fields

import numpy as np

from engines.provenance import ROOT, revision
from fabric import _core

DECIDING = ("topos", "controllers", "workloads", "fabric", "engines", "experiments")
"""The folders whose Python decides a result."""


@dataclass(frozen=True)
class Build:
    """What must be the same, each under the name a reader knows it by; `revision` is told, not compared:
    another one may have the same code."""

    code: str
    core: str
    python: str
    numpy: str
    dask: str
    revision: str

    def unlike(self, other: Build) -> str:
        """What differs, in words: `Python 3.11 here, 3.13 there`; empty where nothing does."""
        said = [
            _words(field.name, getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
            if field.name != "revision" and getattr(self, field.name) != getattr(other, field.name)
        ]
        if said and self.revision != other.revision:
            said.insert(0, f"revision {self.revision} here, {other.revision} there")
        return "; ".join(said)


def _words(name: str, here: str, there: str) -> str:
    if name == "code":
        return "its Python files differ"
    if name == "core":
        return "its C++ core was built from other sources"
    return f"{name.capitalize()} {here} here, {there} there"


def build() -> Build:
    """This machine's, by the files as they are now: edits that were not committed count."""
    digest = hashlib.sha256()
    for folder in DECIDING:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    dask = importlib.metadata.version("distributed")
    return Build(digest.hexdigest(), _core.SOURCES, python, np.__version__, dask, revision())
