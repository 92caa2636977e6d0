"""What a kernel is built from, and a hash of it: package, configuration, edits, our own files."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from common.errors import RunError
from engines.linux.kernel.edits import EDITS
from model.congestion import in_guests, kernel_name

PACKAGE = "linux-source-6.12"
VERSION = "6.12.117-1~deb12u1"
"""The Debian package, and the version of it with which the edits were written and tested."""
HERE = Path(__file__).parent
FRAGMENT = HERE / "fragment.config"
CONGESTION = HERE / "congestion"
_ROOT = HERE.parents[2]
SHARED = tuple(
    _ROOT / name
    for name in (
        "engines/emulation/congestion/bpf/arithmetic.h",
        "engines/emulation/congestion/bpf/ccp_flow.h",
        "fabric/ccp/datapath.h",
    )
)
"""The algorithms' formulas and the agent's datapath. BPF programs, simulator and tests are compiled from the
same files."""
FOLDER = "net/refabric"
"""Where our files go in the kernel's source."""
OF_LINUX = ("reno", "cubic", "bbr", "dctcp")


def own_files() -> tuple[Path, ...]:
    """Return the files that are copied into FOLDER."""
    return (*sorted(path for path in CONGESTION.iterdir() if path.is_file()), *SHARED)


@functools.cache
def inputs() -> str:
    """Return a hash of everything but the package's version that decides what a kernel does."""
    digest = hashlib.sha256()
    for path in (FRAGMENT, *own_files()):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    for edit in EDITS:
        digest.update(f"{edit.path}\0{edit.old}\0{edit.new}\0".encode())
    return digest.hexdigest()[:12]


def options(text: str | None = None) -> dict[str, str]:
    """Return the options of a configuration (default: the fragment): their values by name, "n" if not set."""
    found = {}
    for line in (FRAGMENT.read_text() if text is None else text).splitlines():
        if line.startswith("# CONFIG_") and line.endswith(" is not set"):
            found[line.split()[1]] = "n"
        elif line.startswith("CONFIG_"):
            name, _, value = line.partition("=")
            found[name] = value
    return found


def not_in_force(config: str) -> list[str]:
    """Return the options of the fragment that have another value in the kernel's own configuration."""
    actual = options(config)
    return [name for name, value in options().items() if actual.get(name, "n") != value]


def change(tree: Path) -> None:
    """Apply the edits to an unpacked source, and add our files.

    Raises RunError where an edit does not fit.
    """
    for edit in EDITS:
        path = tree / edit.path
        if not path.is_file():
            raise RunError(f"changing {edit.path} of the kernel's source ({edit.why}): there is no such file")
        path.write_text(edit.applied(path.read_text()))
    folder = tree / FOLDER
    folder.mkdir()
    for path in own_files():
        (folder / path.name).write_bytes(path.read_bytes())


def congestion_controls() -> tuple[str, ...]:
    """Return the names in the kernel of the congestion controls that are compiled in."""
    return (*OF_LINUX, *map(kernel_name, in_guests()))
