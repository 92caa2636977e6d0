"""The packaged kernel source: which version this machine has or can download, and unpacking it.

An ordinary user can do all of it: `apt-get download` needs no root, and checks what it downloads.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import HostUnfitError, RunError
from engines.linux.kernel.source import PACKAGE, VERSION
from setup.kernel.running import output, run

ARCHIVE = Path(f"/usr/src/{PACKAGE}.tar.xz")
"""Where the package puts the source."""
LEFT_OUT = (
    "*/Documentation/*/*", "*/tools/testing/*", "*/drivers/gpu/*.[ch]", "*/arch/[!ux]*/*.[chS]",
    "*.dts", "*.dtsi",
)  # fmt: skip
"""What no build of User-Mode Linux reads: half of the source."""


@dataclass(frozen=True)
class Source:
    """A version of the package; `archive` is None if it is to be downloaded."""

    version: str
    archive: Path | None = None


def choose(installed: str | None, offered: Sequence[str], any_version: bool) -> Source:
    """Return the version to build: the tested one, or with `any_version` what there is.

    `installed` is the installed version, `offered` what apt can download, the newest first. Pure but for the
    errors: raises HostUnfitError if there is no version, or only another one and not `any_version`.
    """
    if installed == VERSION:
        return Source(VERSION, ARCHIVE)
    if VERSION in offered:
        return Source(VERSION)
    others = [installed] if installed else list(offered)
    if not others:
        raise HostUnfitError(
            f"apt knows no package {PACKAGE}, which the kernel is built from: run `sudo apt-get update`; "
            "Debian 12 (with its security updates) and Debian 13 have it"
        )
    if not any_version:
        raise HostUnfitError(
            f"this machine has {PACKAGE} {others[0]}, not {VERSION}, with which the changes to the kernel "
            "were tested: run `refabric kernel build --any-version` to build it all the same (the build "
            "fails where a change does not fit)"
        )
    return Source(others[0], ARCHIVE if installed else None)


def found(any_version: bool) -> Source:
    """Return the version to build on this machine. Raises HostUnfitError as `choose` does."""
    if shutil.which("apt-cache") is None or shutil.which("dpkg-query") is None:
        raise HostUnfitError(
            f"the kernel is built from the Debian package {PACKAGE}, and this system has no apt: build it on "
            "Debian 12 or 13 and copy the folder that `refabric kernel status` shows"
        )
    return choose(_installed(), offered_in(output(("apt-cache", "madison", PACKAGE))), any_version)


def offered_in(madison: str) -> list[str]:
    """Return the versions in the output of `apt-cache madison`, each once, in its order: the newest first."""
    rows = [line.split("|") for line in madison.splitlines()]
    return list(dict.fromkeys(row[1].strip() for row in rows if len(row) == 3))


def _installed() -> str | None:
    if not ARCHIVE.is_file():
        return None
    return output(("dpkg-query", "-W", "-f", "${Version}", PACKAGE), may_fail=True).strip() or None


def unpack(source: Source, tree: Path, scratch: Path, log: Callable[[str], None]) -> None:
    """Unpack the source into `tree`, without what no build reads. `scratch` is an empty folder for downloads.

    Raises RunError, whose message has the last lines of the program that failed.
    """
    archive = source.archive or _downloaded(source, scratch, log)
    tree.mkdir()
    excludes = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    run(("tar", "-xJf", str(archive), "--strip-components=1", *excludes), tree, log)


def _downloaded(source: Source, scratch: Path, log: Callable[[str], None]) -> Path:
    run(("apt-get", "download", f"{PACKAGE}={source.version}"), scratch, log)
    packages = list(scratch.glob("*.deb"))
    if len(packages) != 1:
        raise RunError(f"downloading {PACKAGE}: apt-get left {len(packages)} packages in {scratch}, not one")
    run(("dpkg-deb", "-x", packages[0].name, "unpacked"), scratch, log)
    packages[0].unlink()
    return scratch / "unpacked" / ARCHIVE.relative_to("/")
