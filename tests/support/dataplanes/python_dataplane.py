"""A test-only data plane: one Python thread moves frames from veth to veth by destination IP.

It has no rates and no queues, and carries a few thousand packets per second: enough for pings. It honours
`set_link` for the links of hosts, and for any link when no other shortest path is left.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from engines.emulation.sandbox.inside import Caller
from model.spec import RunSpec
from topos.topology import Topology

SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
_VNET = 10


class StandIn:
    """Implements DataPlane over one AF_PACKET socket with virtio headers."""

    partial_checksums = True
    answers_arp = False
    queues_at_hosts = False

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.down: set[int] = set()
        self.longest = 0
        """Bytes of the longest frame seen."""
        self.kinds: set[int] = set()
        """EtherTypes seen."""
        self._thread: threading.Thread | None = None
        self._wake = socket.socketpair()

    def check(self) -> None:
        pass

    def dpctl(self, switch: str, *arguments: str) -> str:
        raise NotImplementedError(f"{switch} {arguments}")

    def start(self, ifindexes: Sequence[int], pids: Mapping[int, int]) -> None:
        del pids
        packet = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        packet.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        packet.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        names = [socket.if_indextoname(index) for index in ifindexes]
        self._nic_of_name = {name: i for i, name in enumerate(names)}
        self._outs = []
        for name in names:
            out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            out.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
            out.bind((name, 0))
            self._outs.append(out)
        self._nic_of_ip = {socket.inet_aton(nic.ip): i for i, nic in enumerate(self.topology.nics)}
        self._macs = [bytes.fromhex(nic.mac.replace(":", "")) for nic in self.topology.nics]
        self._thread = threading.Thread(target=self._carry, args=(packet,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._wake[1].send(b"x")
            self._thread.join(10)
            assert not self._thread.is_alive()
            self._thread = None

    def set_link(self, link: int, up: bool) -> None:
        if up:
            self.down.discard(link)
        else:
            self.down.add(link)

    def _carry(self, packet: socket.socket) -> None:
        with packet:
            while True:
                ready, _, _ = select.select([packet, self._wake[0]], [], [])
                if self._wake[0] in ready:
                    break
                frame, address = packet.recvfrom(1 << 16)
                self._forward(frame, address[0])
        for out in self._outs:
            out.close()

    def _forward(self, frame: bytes, name: str) -> None:
        source = self._nic_of_name.get(name)
        if source is None or len(frame) < _VNET + 34:
            return
        (kind,) = struct.unpack_from("!H", frame, _VNET + 12)
        self.kinds.add(kind)
        self.longest = max(self.longest, len(frame) - _VNET)
        destination = self._nic_of_ip.get(frame[_VNET + 30 : _VNET + 34])
        if kind != 0x0800 or destination is None or not self._connected(source, destination):
            return
        self._outs[destination].send(frame[:_VNET] + self._macs[destination] + frame[_VNET + 6 :])

    def _connected(self, source: int, destination: int) -> bool:
        if not self.down:
            return True
        a, b = self.topology.nics[source], self.topology.nics[destination]
        paths = self.topology.shortest_paths(a.switch, b.switch)
        alive = any(
            not any(self.topology.link_between(*hop) in self.down for hop in pairwise(path)) for path in paths
        )
        return alive and not {a.link, b.link} & self.down


def make(_spec: RunSpec, topology: Topology, _logs: Path, _caller: Caller) -> StandIn:
    """A DataPlaneFactory."""
    return StandIn(topology)
