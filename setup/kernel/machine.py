"""What a build needs of the machine: an x86-64 CPU, programs, space on the disk."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from common.errors import HostUnfitError

PACKAGES = {
    "gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "xz": "xz-utils",
    "tar": "tar", "perl": "perl", "strip": "binutils", "setpriv": "util-linux", "dpkg-deb": "dpkg",
}  # fmt: skip
"""The package of each program that a build runs."""
HEADER = Path("/usr/include/stdio.h")
NEEDED_GB = 2.5
"""The unpacked source, the objects, and the package while it is unpacked."""


def check(folder: Path, path: str | None = None) -> None:
    """Check CPU, programs (in `path`, default: PATH) and the disk of `folder`; raises HostUnfitError."""
    check_cpu(platform.machine())
    missing = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool, path=path) is None})
    if not HEADER.exists():
        missing.append("libc6-dev")
    if missing:
        raise HostUnfitError(
            "building the kernel needs packages that are missing: "
            f"run `sudo apt-get install {' '.join(missing)}`"
        )
    check_disk(folder, shutil.disk_usage(existing(folder)).free / 1e9)


def check_cpu(machine: str) -> None:
    """Raise HostUnfitError unless `machine` (uname -m) is x86-64: User-Mode Linux exists for x86 only."""
    if machine != "x86_64":
        raise HostUnfitError(
            f"the engine linux needs an x86-64 machine, this one is {machine}: "
            "use --engine mininet or simulator"
        )


def check_disk(folder: Path, free_gb: float) -> None:
    """Raise HostUnfitError if there is too little space for a build."""
    if free_gb < NEEDED_GB:
        raise HostUnfitError(
            f"building the kernel needs {NEEDED_GB:g} GB in {folder}, where {free_gb:.1f} GB are free: "
            "free some space, or set XDG_CACHE_HOME to a folder on another disk"
        )


def existing(folder: Path) -> Path:
    """Return the nearest folder above that exists."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))
