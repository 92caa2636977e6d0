"""Buffer space for the frames that Open vSwitch's user-space datapath has queued.

The datapath sends through one packet socket for all ports (lib/netdev-linux.c). The kernel charges frames in
all queues to that socket. Its buffer of 208 kB would limit all queues together to 90 full frames, and frames
beyond that are dropped without a count. The default is a sysctl of the whole machine. Therefore this code
duplicates the socket (pidfd_getfd(2)) and sets its buffer to the capacity of all queues.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from pathlib import Path

from common.errors import HostUnfitError, RunError

FRAME_BYTES = 4096
"""Memory that the kernel charges for a full frame (its `truesize`), with a margin."""
_SNDBUFFORCE = 32
_MAX_BYTES = (1 << 30) - 1
_PIDFD_GETFD = 438
_libc = ctypes.CDLL(None, use_errno=True)


def make_room(pid: int, frames: int) -> None:
    """Set the buffer of the sending socket of process `pid` to hold `frames` frames.

    Raises RunError if it has no such socket yet (the first frame sent creates it), and HostUnfitError if the
    kernel does not allow access.
    """
    found = 0
    size = min(_MAX_BYTES, frames * FRAME_BYTES // 2)  # the kernel doubles this value
    for number in _sockets(pid):
        sock = _borrow(pid, number)
        if sock is None:
            continue
        with sock:
            if sock.family == socket.AF_PACKET and sock.getsockname()[0] == "":
                sock.setsockopt(socket.SOL_SOCKET, _SNDBUFFORCE, size)
                found += 1
    if not found:
        raise RunError(f"enlarging Open vSwitch's send buffer: pid {pid} has no packet socket for sending")


def _sockets(pid: int) -> list[int]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if str(entry.readlink()).startswith("socket:"):
                found.append(int(entry.name))
        except FileNotFoundError:
            continue  # Closed meanwhile, so not the socket for sending, which stays open.
    return found


def _borrow(pid: int, number: int) -> socket.socket | None:
    """Duplicate descriptor `number` of process `pid`; None if the process closed it meanwhile.

    Closing the duplicate does not affect the process.
    """
    process = os.pidfd_open(pid)
    try:
        fd = _libc.syscall(_PIDFD_GETFD, process, number, 0)
        code = ctypes.get_errno()
    finally:
        os.close(process)
    if fd >= 0:
        return socket.socket(fileno=fd)
    if code == errno.EBADF:
        return None
    reason = os.strerror(code)
    raise HostUnfitError(
        f"duplicating a descriptor of Open vSwitch (pidfd_getfd): {reason}; Linux 5.6 or newer is needed"
    )
