"""The programs of a real IMS: whether they are here, and the command that installs them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from common.errors import HostUnfitError

KAMAILIO, SIPP, REDIS = "/usr/sbin/kamailio", "/usr/bin/sipp", "/usr/bin/redis-server"
FILES = Path(__file__).parent / "files"
MODULE = "*/kamailio/modules/ndb_redis.so"
"""Of the package kamailio-redis-modules, below LIBRARIES."""
LIBRARIES = Path("/usr/lib")
INSTALL = "sudo setup/install.sh --ims"


def missing() -> list[str]:
    """Return the names of missing programs."""
    programs = [Path(program) for program in (KAMAILIO, SIPP, REDIS)]
    absent = [program.name for program in programs if not os.access(program, os.X_OK)]
    module = [] if any(LIBRARIES.glob(MODULE)) else ["kamailio's ndb_redis.so"]
    return [*absent, *module, *([] if shutil.which("gcc") else ["gcc"])]


def check() -> None:
    """Raise HostUnfitError with the command that installs the programs, if some are missing."""
    if absent := missing():
        raise HostUnfitError(f"a real IMS needs {', '.join(absent)}: run {INSTALL}")
