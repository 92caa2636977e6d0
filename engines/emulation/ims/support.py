"""The programs of a real IMS: whether they are here, and their installation when a run first needs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from common.errors import HostUnfitError

KAMAILIO, SIPP, REDIS = "/usr/sbin/kamailio", "/usr/bin/sipp", "/usr/bin/redis-server"
FILES = Path(__file__).parent / "files"
MODULE = "*/kamailio/modules/ndb_redis.so"
"""Of the package kamailio-redis-modules, below LIBRARIES."""
LIBRARIES = Path("/usr/lib")
INSTALLER = Path(__file__).parents[3] / "setup" / "install.sh"
INSTALL = "sudo setup/install.sh --ims"
INSTALL_S = 600


def missing() -> list[str]:
    """Return the names of missing programs."""
    programs = [Path(program) for program in (KAMAILIO, SIPP, REDIS)]
    absent = [program.name for program in programs if not os.access(program, os.X_OK)]
    module = [] if any(LIBRARIES.glob(MODULE)) else ["kamailio's ndb_redis.so"]
    return [*absent, *module, *([] if shutil.which("gcc") else ["gcc"])]


def check() -> None:
    """Raise HostUnfitError if programs are missing and cannot be installed."""
    absent = missing()
    if absent and (os.geteuid() != 0 or shutil.which("apt-get") is None):
        raise HostUnfitError(f"a real IMS needs {', '.join(absent)}: run {INSTALL}")


def ensure() -> bool:
    """Install what is missing; return whether anything was. Raises HostUnfitError if it cannot be."""
    if not missing():
        return False
    try:
        done = subprocess.run(
            [str(INSTALLER), "--ims"], capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostUnfitError(f"installing {', '.join(missing())}: {error}; run {INSTALL}") from error
    if done.returncode or missing():
        last = next(reversed(done.stderr.strip().splitlines()), "it failed")
        raise HostUnfitError(f"installing what a real IMS needs: {last}")
    return True
