"""ethtool's feature switches by ioctl: one call per interface instead of one process of ethtool(8).

Source: include/uapi/linux/ethtool.h, struct ethtool_sfeatures; net/ethtool/ioctl.c.
"""

from __future__ import annotations

import array
import fcntl
import functools
import socket
import struct

_SIOCETHTOOL = 0x8946
_GET_STRINGS, _GET_SET_INFO, _GET_FEATURES, _SET_FEATURES = 0x1B, 0x37, 0x3A, 0x3B
_SS_FEATURES = 4
_NAME_BYTES = 32
_names_of_kernel: list[str] = []


def offloads_off(control: socket.socket, name: str, tx_checksum: bool) -> None:
    """Turn off segmentation offloads (TSO, GSO etc.) and GRO of interface `name`, so queues count packets.

    `control` is any socket in the interface's namespace. Without transmit checksum offload the stack
    computes every checksum. With it (`tx_checksum`), frames leave with partial checksums, which the data
    plane's virtio headers preserve. Raises OSError.
    """
    valid = _mask(feature_names(control, name), tx_checksum)
    request = array.array("I", (_SET_FEATURES, len(valid)))
    for block in valid:
        request.extend((block, 0))
    # A positive return value only means that veth lacks some of these features.
    _ethtool(control, name, request)


def enabled(control: socket.socket, name: str) -> frozenset[str]:
    """Return the names of the active features of interface `name`, as `ethtool -k` prints them."""
    names = feature_names(control, name)
    blocks = (len(names) + 31) // 32
    request = array.array("I", (_GET_FEATURES, blocks, *([0] * 4 * blocks)))
    _ethtool(control, name, request)
    active = [request[2 + 4 * block + 2] for block in range(blocks)]
    return frozenset(text for bit, text in enumerate(names) if active[bit // 32] >> bit % 32 & 1)


@functools.cache
def _mask(names: tuple[str, ...], tx_checksum: bool) -> tuple[int, ...]:
    blocks = [0] * ((len(names) + 31) // 32)
    for bit, name in enumerate(names):
        checksum = name.startswith("tx-checksum-") and not tx_checksum
        if name.endswith("-segmentation") or name == "rx-gro" or checksum:
            blocks[bit // 32] |= 1 << bit % 32
    return tuple(blocks)


def feature_names(control: socket.socket, name: str) -> tuple[str, ...]:
    """Return the kernel's feature names in bit order. They are equal for all interfaces, so read once."""
    if not _names_of_kernel:
        info = array.array("I", (_GET_SET_INFO, 0, 1 << _SS_FEATURES, 0, 0))
        _ethtool(control, name, info)
        header = struct.pack("=III", _GET_STRINGS, _SS_FEATURES, info[4])
        request = array.array("B", header + bytes(info[4] * _NAME_BYTES))
        _ethtool(control, name, request)
        raw = request.tobytes()[len(header) :]
        fields = (raw[i : i + _NAME_BYTES] for i in range(0, len(raw), _NAME_BYTES))
        _names_of_kernel.extend(field.split(b"\0")[0].decode() for field in fields)
    return tuple(_names_of_kernel)


def _ethtool(control: socket.socket, name: str, data: array.array[int]) -> None:
    address, _ = data.buffer_info()
    fcntl.ioctl(control, _SIOCETHTOOL, struct.pack("16sP16x", name.encode(), address))
