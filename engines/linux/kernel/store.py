"""Built kernels, one folder each, outside the clone: <cache>/refabric/kernels/<version>-<inputs>/.

A folder is complete or absent: the builder renames it into place. It holds `linux`, `config`, `build.json`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engines.linux.kernel.source import VERSION, inputs

PROGRAM, CONFIG, RECORD = "linux", "config", "build.json"


@dataclass(frozen=True)
class Kernel:
    """A built kernel. `version` is Linux's (6.12.117), `package` the Debian package's (6.12.117-1~deb12u1).

    `inputs` is the hash of configuration, edits and sources; `congestion_controls` are names in the kernel;
    `built_at` is UTC, ISO 8601; `build_s` is what the build took; `sha256` is that of the program.
    """

    path: Path
    version: str
    package: str
    inputs: str
    congestion_controls: tuple[str, ...]
    built_at: str
    compiler: str
    build_s: float
    sha256: str

    @property
    def is_current(self) -> bool:
        """Whether it was built from the inputs of this clone."""
        return self.inputs == inputs()

    def to_json(self) -> dict[str, Any]:
        """Return the fields for machines."""
        return {**asdict(self), "path": str(self.path), "current": self.is_current}


def folder() -> Path:
    """Return the folder of all kernels, which may not exist. XDG_CACHE_HOME moves it."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "refabric/kernels"


def folder_of(package: str) -> Path:
    """Return the folder of the kernel that is built from this version of the package and these inputs."""
    return folder() / f"{package}-{inputs()}"


def stored() -> tuple[Kernel, ...]:
    """Return all complete kernels, the newest first."""
    found = [kernel for each in _folders() if (kernel := _read(each))]
    return tuple(sorted(found, key=lambda kernel: kernel.built_at, reverse=True))


def current() -> Kernel | None:
    """Return the kernel for this clone: of the tested package if there is one, else the newest; else None."""
    fitting = [kernel for kernel in stored() if kernel.is_current]
    tested = [kernel for kernel in fitting if kernel.package == VERSION]
    return next(iter((*tested, *fitting)), None)


def _folders() -> list[Path]:
    try:
        return sorted(each for each in folder().iterdir() if each.is_dir() and not each.name.startswith("."))
    except FileNotFoundError:
        return []


def _read(each: Path) -> Kernel | None:
    """Return the kernel in a folder; None if the folder holds none that this refabric can read."""
    try:
        fields = json.loads((each / RECORD).read_text())
        controls = tuple(fields.pop("congestion_controls"))
        kernel = Kernel(path=each / PROGRAM, congestion_controls=controls, **fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return kernel if os.access(kernel.path, os.X_OK) else None
