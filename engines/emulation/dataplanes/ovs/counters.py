"""What the switches' sockets lost: frames that Open vSwitch's user-space datapath was too slow to take.

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
    """For `socket_drops`, of the calling thread's namespace."""
    return NetlinkSocket(NETLINK_SOCK_DIAG)


def socket_drops(sock: NetlinkSocket) -> int:
    """Frames that found the buffer of a packet socket full: those Open vSwitch's user-space datapath was too
    slow to take. Raises OSError."""
    request = struct.pack("=BBHIIII", _AF_PACKET, 0, 0, 0, _SHOW_MEMORY, _U32, _U32)
    drops = 0
    for message in sock.request(_BY_FAMILY, request, NLM_F_DUMP):
        memory = parse_attrs(message.payload, _DIAG_BYTES).get(_MEMORY, b"")
        if len(memory) >= 4 * (_DROPS + 1):
            drops += struct.unpack_from("=I", memory, 4 * _DROPS)[0]
    return drops
