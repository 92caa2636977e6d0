"""A first boot of a built kernel: what it says of itself, or why it does not run on this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from common.errors import CommandError, RunError
from setup.kernel.running import run

BOOT_S = 60.0
START_NS = 1_700_000_000_000_000_000
_INIT = """#!/bin/sh
/bin/mount -t proc proc /proc
echo "RELEASE $(/bin/cat /proc/sys/kernel/osrelease)"
echo "CONTROLS $(/bin/cat /proc/sys/net/ipv4/tcp_available_congestion_control)"
"""
_OPTIONS = (
    "mem=256M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "con=null", "con0=fd:0,fd:1",
    "time-travel=inf-cpu", f"time-travel-start={START_NS}", "quiet", "noreboot", "panic=-1",
)  # fmt: skip
"""The guest ends by a panic, because its first program ends."""


@dataclass(frozen=True)
class Tried:
    """What a guest found: Linux's version, and the congestion controls by their names in the kernel."""

    version: str
    congestion_controls: tuple[str, ...]


def trial(program: Path, scratch: Path) -> Tried:
    """Boot the kernel once, with files in the folder `scratch`. Raises CommandError with what it printed."""
    return read(boot(program, _INIT, scratch))


def boot(program: Path, script: str, scratch: Path, seed: int = 1) -> str:
    """Run a shell script as the first program of a guest, and return what it and the kernel print.

    The guest sees the files of this machine, and cannot write to them. `scratch` gets the script and the
    guest's memory. It ends with the script, or after BOOT_S seconds without a line.
    """
    init = scratch / "init"
    init.write_text(script)
    init.chmod(0o755)
    said: list[str] = []
    options = (*_OPTIONS, f"rng_seed={seed}", f"uml_dir={scratch}", f"init={init}")
    try:
        run((str(program), *options), scratch, said.append, {"TMPDIR": str(scratch)}, BOOT_S)
    except RunError as error:  # a panic, as intended; readers miss their lines if it was not
        said.append(str(error))
    return "\n".join(said)


def read(said: str) -> Tried:
    """Return what the guest's lines say. Raises CommandError if they are not all there."""
    release = re.search(r"^RELEASE (\S+)", said, re.MULTILINE)
    controls = re.search(r"^CONTROLS (.+)", said, re.MULTILINE)
    if release is None or controls is None:
        last = " | ".join(said.strip().splitlines()[-6:])
        raise CommandError(f"booting the built kernel: it did not come up on this machine: {last}")
    return Tried(release[1], tuple(controls[1].split()))
