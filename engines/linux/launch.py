"""The guest's parent: it starts the guest with what that may use, and ends it with all of its processes.

    engine -- this program -- linux -- one process per address space of the guest

The kernel of this machine ends this program's guest with it (PR_SET_PDEATHSIG), but not what the guest has
started: User-Mode Linux traces those processes, and one that is stopped when its tracer is killed stays
stopped. So this program adopts them (PR_SET_CHILD_SUBREAPER), and kills and awaits all of them when the guest
or the engine has ended. It is a program of its own, so that no thread of the engine is in the way.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import struct
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from common import processes

ROOT = Path(__file__).resolve().parents[2]
MEMORY = "refabric-guest-"
"""Beginning of the name of a guest's folder for its memory, followed by the pid of its parent."""
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from engines.linux.launch import serve; serve(sys.argv[2])"
)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ADDR_NO_RANDOMIZE = 0x0040000
_ENDS = {signal.SIGTERM, signal.SIGCHLD}


def launcher(argv: Sequence[str], cpu: int | None, writable: Path, memory: Path) -> list[str]:
    """Return the command that runs `argv`, pinned to `cpu` (None: to none), until SIGTERM or our end.

    It must lead a process group. The guest can write nothing but below `writable` and in a folder of its own
    in the folder `memory`, which goes with it.
    """
    request = {
        "argv": list(argv),
        "cpu": cpu,
        "writable": str(writable),
        "memory": str(memory),
        "parent": os.getpid(),
    }
    return [*processes.python(), _PROGRAM, str(ROOT), json.dumps(request)]


def serve(request: str) -> NoReturn:
    """Run the guest, and exit as a shell would: with its exit code, or 128 and the signal that ended it."""
    asked = json.loads(request)
    libc = ctypes.CDLL(None, use_errno=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != asked["parent"]:
        sys.exit(137)
    memory = _memory_folder(Path(asked["memory"]))
    try:
        parent = os.getpid()
        guest = os.fork()
        if guest == 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            _become(asked, memory, parent, libc)
        with contextlib.suppress(PermissionError):  # it has done so itself, and is the guest already
            os.setpgid(guest, guest)
        status = _wait(guest)
        _end_group(guest)
    finally:
        shutil.rmtree(memory, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


def _memory_folder(parent: Path) -> Path:
    """Make a folder that only this user can enter, and remove those whose processes were killed."""
    for folder in parent.glob(f"{MEMORY}[0-9]*-*"):
        pid = folder.name.removeprefix(MEMORY).partition("-")[0]
        with contextlib.suppress(FileNotFoundError):
            if folder.lstat().st_uid == os.geteuid() and not Path("/proc", pid).exists():
                shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{MEMORY}{os.getpid()}-", dir=parent))


def _become(asked: dict[str, Any], memory: Path, parent: int, libc: ctypes.CDLL) -> NoReturn:
    """Set this process up, and become the guest."""
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(137)
    os.setpgid(0, 0)  # here and in the parent, whichever comes first
    # The start of the kernel's heap decides how much memory the guest has, to the page.
    libc.personality(ctypes.c_ulong(_ADDR_NO_RANDOMIZE))
    if asked["cpu"] is not None:
        os.sched_setaffinity(0, {asked["cpu"]})
    write_only_below([asked["writable"], str(memory)])
    argv = asked["argv"]
    os.execve(argv[0], argv, {"PATH": processes.SYSTEM_PATH, "TMPDIR": str(memory), "HOME": "/nonexistent"})


def _wait(guest: int) -> int:
    """Return the guest's wait status, or that of a killed one after SIGTERM."""
    while signal.sigwait(_ENDS) == signal.SIGCHLD:  # also if a process of the guest stops, or was adopted
        ended, status = os.waitpid(guest, os.WNOHANG)
        if ended:
            return status
    return signal.SIGKILL


def _end_group(guest: int) -> None:
    """Kill the guest and all that it started, which share its process group, and wait for their ends."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(guest, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


# Landlock (landlock(7), Linux >= 5.13) needs no root.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS = 38
_WRITE_FILE, _REMOVE_DIR, _REMOVE_FILE = 1 << 1, 1 << 4, 1 << 5
_MAKE_ALL = 0x1FC0
"""The rights to make files of any kind, include/uapi/linux/landlock.h."""
_WRITES = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_ALL
_TRUNCATE = 1 << 14
_TRUNCATE_VERSION = 3
_DEVICES = ("/dev/null", "/dev/zero")
"""No terminals: those of the user's other programs are among them."""


def supported() -> int:
    """Return the version of Landlock in this kernel; 0 if it has none."""
    version: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(0, version)


def write_only_below(folders: Sequence[str]) -> bool:
    """Restrict this process and its children to writing below `folders`; return whether the kernel does so.

    Raises OSError if it has Landlock and refuses.
    """
    version = supported()
    if not version:
        return False
    rights = _WRITES | (_TRUNCATE if version >= _TRUNCATE_VERSION else 0)
    libc = ctypes.CDLL(None, use_errno=True)
    handled = struct.pack("=Q", rights)
    ruleset = _checked(libc.syscall(_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0))
    for folder in (*folders, *(device for device in _DEVICES if Path(device).exists())):
        allowed = rights if Path(folder).is_dir() else rights & (_WRITE_FILE | _TRUNCATE)
        fd = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", allowed, fd)
        _checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0))
        os.close(fd)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)
    return True


def _checked(returned: int) -> int:
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"landlock: {os.strerror(number)}")
    return returned
