"""Whether this machine can stamp ranks: tested by loading the programs, before anything starts."""

from __future__ import annotations

import platform
import re

from common.errors import HostUnfitError
from engines.emulation.congestion import support as bpf
from engines.emulation.ranks.programs import HIDE_SACKS, STAMP, load

OLDEST = (6, 6)
"""First Linux with links to an interface's packets (TCX)."""


def unsupported(release: str | None = None) -> str:
    """Return why the programs do not work here, with what helps; empty if they do. Needs root."""
    for name in (STAMP, HIDE_SACKS):
        if missing := bpf.files_missing(name=name):
            return missing.text
    release = platform.release() if release is None else release
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
        return f"Linux {release} is too old: programs at interfaces need 6.6; boot a newer kernel"
    for name in (STAMP, HIDE_SACKS):
        try:
            load(name).close()
        except HostUnfitError as error:
            return " ".join(str(error).split())
    return ""
