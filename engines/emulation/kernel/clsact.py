"""BPF programs at an interface's egress: the clsact queue discipline and a cls_bpf filter on it.

Both belong to the interface and end with it. Source: net/sched/cls_bpf.c, include/uapi/linux/pkt_cls.h.
Functions raise OSError with the kernel's text and act in the namespace that the socket was opened in.
"""

from __future__ import annotations

import socket
import struct

from engines.emulation.kernel.netlink import NLM_F_ACK, NetlinkSocket, attr, nested

_NEWQDISC, _DELQDISC, _NEWTFILTER = 36, 37, 44
_CREATE, _EXCL = 0x400, 0x200
_KIND, _OPTIONS = 1, 2
_CLSACT, _HANDLE, _EGRESS = 0xFFFFFFF1, 0xFFFF0000, 0xFFFFFFF3
_BPF_FD, _BPF_NAME, _BPF_FLAGS, _BPF_DIRECT_ACTION = 6, 7, 8, 1
_ETH_P_ALL = 3
_PRIORITY = 1


def attach_at_egress(sock: NetlinkSocket, ifindex: int, program_fd: int, name: str) -> None:
    """Run the program on every packet that leaves by an interface without a clsact queue discipline."""
    kind = attr(_KIND, b"clsact\0")
    sock.request(_NEWQDISC, _header(ifindex, _HANDLE, _CLSACT) + kind, NLM_F_ACK | _CREATE | _EXCL)
    info = _PRIORITY << 16 | socket.htons(_ETH_P_ALL)
    program = attr(_BPF_FD, struct.pack("=I", program_fd)) + attr(_BPF_NAME, name.encode() + b"\0")
    options = nested(_OPTIONS, program, attr(_BPF_FLAGS, struct.pack("=I", _BPF_DIRECT_ACTION)))
    payload = _header(ifindex, 0, _EGRESS, info) + attr(_KIND, b"bpf\0") + options
    sock.request(_NEWTFILTER, payload, NLM_F_ACK | _CREATE | _EXCL)


def detach(sock: NetlinkSocket, ifindex: int) -> None:
    """Remove the interface's clsact queue discipline with its filters."""
    payload = _header(ifindex, _HANDLE, _CLSACT) + attr(_KIND, b"clsact\0")
    sock.request(_DELQDISC, payload, NLM_F_ACK)


def _header(ifindex: int, handle: int, parent: int, info: int = 0) -> bytes:
    return struct.pack("=BxHiIII", socket.AF_UNSPEC, 0, ifindex, handle, parent, info)
