"""Room for the frames that Open vSwitch's user-space datapath has queued.

It sends by one packet socket for all ports (lib/netdev-linux.c), and the kernel charges what waits in any
queue to that socket, whose buffer of 208 kB would make all queues together as long as 90 full frames; what
does not fit is dropped uncounted. The default is a sysctl of the whole machine, so the one socket is taken
hold of (pidfd_getfd(2)) and given what all queues can hold.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from pathlib import Path

from common.errors import HostUnfitError, RunError

FRAME_BYTES = 4096
"""What the kernel charges for a full frame (its `truesize`), and some."""
_SNDBUFFORCE = 32
_MOST_BYTES = (1 << 30) - 1
_PIDFD_GETFD = 438
_libc = ctypes.CDLL(None, use_errno=True)


def make_room(pid: int, frames: int) -> None:
    """Let the sending socket of process `pid` hold so many frames.

    Raises RunError when it has none yet (it is made with the first frame sent), HostUnfitError when the
    kernel does not let it be had.
    """
    found = 0
    size = min(_MOST_BYTES, frames * FRAME_BYTES // 2)  # the kernel doubles it
    for number in _sockets(pid):
        sock = _borrow(pid, number)
        if sock is None:
            continue
        with sock:
            if sock.family == socket.AF_PACKET and sock.getsockname()[0] == "":
                sock.setsockopt(socket.SOL_SOCKET, _SNDBUFFORCE, size)
                found += 1
    if not found:
        raise RunError(f"Open vSwitch (pid {pid}) has no packet socket to send by")


def _sockets(pid: int) -> list[int]:
    found = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if str(entry.readlink()).startswith("socket:"):
                found.append(int(entry.name))
        except FileNotFoundError:
            continue  # closed meanwhile: not the one, which stays
    return found


def _borrow(pid: int, number: int) -> socket.socket | None:
    """The socket at descriptor `number` of process `pid`, None when it has closed it meanwhile. Closing ours
    leaves it its own."""
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
        f"taking a descriptor of Open vSwitch's (pidfd_getfd): {reason}; Linux 5.6 is needed"
    )
