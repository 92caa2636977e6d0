"""Frames lost at packet sockets: Open vSwitch's user-space datapath read them too slowly.

Source: include/uapi/linux/packet_diag.h.
"""

from __future__ import annotations

import struct

from engines.emulation.kernel.netlink import NETLINK_SOCK_DIAG, NLM_F_DUMP, NetlinkSocket, parse_attrs

_U32 = 0xFFFFFFFF
_BY_FAMILY, _AF_PACKET = 20, 17
_SHOW_MEMORY = 0x10
_DIAG_BYTES = 16
_MEMORY, _DROPS = 6, 8


def diag_socket() -> NetlinkSocket:
    """Return a socket for `socket_drops`, in the calling thread's namespace."""
    return NetlinkSocket(NETLINK_SOCK_DIAG)


def socket_drops(sock: NetlinkSocket) -> int:
    """Return how many frames found the buffer of a packet socket full. Raises OSError."""
    request = struct.pack("=BBHIIII", _AF_PACKET, 0, 0, 0, _SHOW_MEMORY, _U32, _U32)
    drops = 0
    for message in sock.request(_BY_FAMILY, request, NLM_F_DUMP):
        memory = parse_attrs(message.payload, _DIAG_BYTES).get(_MEMORY, b"")
        if len(memory) >= 4 * (_DROPS + 1):
            drops += struct.unpack_from("=I", memory, 4 * _DROPS)[0]
    return drops
