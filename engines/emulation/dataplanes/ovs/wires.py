"""Links in the kernel: veth pairs between bridges, and the queue disciplines at every end.

A port (model/network_plan.py) is the interface that transmits: an interface of a bridge in the run's
namespace, or a host's NIC in the host's namespace.

The user-space datapath sends through one packet socket for all ports (lib/netdev-linux.c). The kernel charges
frames in all queues to that socket. Its buffer of 208 kB would limit all queues together to 90 full frames,
and frames beyond that are dropped without a count. The default is a sysctl of the whole machine. Therefore
this code duplicates the socket (pidfd_getfd(2)) and sets its buffer to the capacity of all queues.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from common.errors import HostUnfitError, RunError
from engines.emulation.dataplanes.dataplane import Counts
from engines.emulation.kernel import rtnl
from engines.emulation.kernel.netlink import NETLINK_SOCK_DIAG, NLM_F_DUMP, NetlinkSocket, parse_attrs
from engines.emulation.kernel.rtnl import offloads_off
from engines.emulation.kernel.shaping import (
    UNBOUNDED_PKTS,
    Counters,
    Shape,
    add_shape,
    nic_shape,
    open_nics,
    read_queues,
    set_rate,
    switch_shape,
)
from model.links import downlink, uplink
from model.spec import LinkSpec
from topos.topology import SwitchPorts, Topology, interface_name, local_mac

GROUP = 0x0F5
MIN_FRAME_BYTES = 60
_MAC_BASE = 0x8000_0000
_AT_ONCE_S, _MAX_LOOKS = 0.01, 3
"""Read counters again if one reading took longer than this, and at most so often."""


def interface(topology: Topology, ports: SwitchPorts, switch: int, link: int) -> str:
    """Return the name of the interface of `switch` at `link`: `p0e0-eth1` is port 1 of p0e0."""
    return interface_name(topology.nodes[switch].name, switch, ports.port_of(switch, link))


@dataclass(frozen=True)
class QueueCounts:
    """Counters of all ports: time of reading by the monotonic clock; packets and bytes sent and packets
    dropped since the start; packets queued now. Entry i is for port i."""

    read_s: npt.NDArray[np.float64]
    tx_packets: Counts
    tx_bytes: Counts
    drops: Counts
    queued_pkts: Counts


class Wires:
    """All links between bridges and hosts of a topology. Call `make` first and `close` last."""

    def __init__(self, topology: Topology, link: LinkSpec) -> None:
        self._topology = topology
        self._link = link
        self._ports = SwitchPorts(topology)
        self._route: NetlinkSocket | None = None
        self._diag: NetlinkSocket | None = None
        self._hosts: dict[int, NetlinkSocket] = {}
        """Socket of each host, by node."""
        self._pairs = 0
        self._one_asks = threading.Lock()
        """Serialises samples, readings and link events, whose threads share the sockets."""
        self._ifindex: dict[int, int] = {}
        """Interface index of each port."""
        self._place: dict[int, dict[int, int]] = {}
        """Interface index -> port, for the run's namespace (-1) and each host's (node)."""

    def make(self, pids: Mapping[int, int]) -> None:
        """Make and shape all links. Raises RunError with what could not be made."""
        self._route, self._diag = rtnl.route_socket(), diag_socket()
        try:
            self._make_veths()
            self._find_interfaces(pids)
            self._shape()
        except OSError as error:
            raise RunError(f"making the links between Open vSwitch's bridges: {error}") from error

    def close(self) -> None:
        """Delete the veth pairs and close the sockets. No effect if nothing was made."""
        if self._route is not None and self._pairs:
            try:
                rtnl.delete_group(self._route, GROUP)
            except OSError as error:
                raise RunError(f"deleting the links between Open vSwitch's bridges: {error}") from error
        self._pairs = 0
        for sock in (self._route, self._diag, *self._hosts.values()):
            if sock is not None:
                sock.close()
        self._route = self._diag = None
        self._hosts, self._place = {}, {}

    def set_link(self, link: int, up: bool) -> None:
        """Take both ends of a link up or down, like plugging a cable. Raises RunError."""
        ends = {self._bridge_end(link, node) for node in self._topology.links[link].ends} - {""}
        try:
            with self._one_asks:
                for name in ends:
                    rtnl.set_up(self._asked, socket.if_nametoindex(name), up)
        except OSError as error:
            raise RunError(f"taking link {link} {'up' if up else 'down'}: {error}") from error

    def set_share(self, port: int, share: float) -> None:
        """Set the port's rate to a share of its full rate. Raises RunError."""
        try:
            rate_bps = round(share * self._shape_of(port).rate_bps)
            with self._one_asks:
                set_rate(self._socket_of(port), self._ifindex[port], rate_bps)
        except OSError as error:
            raise RunError(f"changing the rate of port {port}: {error}") from error

    def counts(self) -> QueueCounts:
        """Return the counters of all ports. Raises RunError if the kernel does not return them."""
        table = np.zeros((4, 2 * len(self._topology.links)), np.uint64)
        read_s = np.full(table.shape[1], time.monotonic())
        try:
            for node, ports in self._place.items():
                with self._one_asks:
                    read_s[list(ports.values())], found = _at_once(
                        self._asked if node < 0 else self._hosts[node]
                    )
                for ifindex, counts in found:
                    if ifindex in ports:
                        table[:, ports[ifindex]] = counts
        except OSError as error:
            raise RunError(f"reading the queues' counters: {error}") from error
        return QueueCounts(read_s, *table)

    def socket_drops(self) -> int:
        """Return how many frames the user-space datapath read too late, since the start."""
        assert self._diag is not None
        try:
            return socket_drops(self._diag)
        except OSError as error:
            raise RunError(f"reading the counters of Open vSwitch's sockets: {error}") from error

    def room_pkts(self) -> int:
        """Return twice the capacity of all queues in packets; the kernel holds as many again."""
        shapes = [self._shape_of(port) for port in range(2 * len(self._topology.links))]
        most = [
            shape.queue_pkts or shape.queue_bytes // MIN_FRAME_BYTES or UNBOUNDED_PKTS for shape in shapes
        ]
        return 2 * sum(most)

    def full_pkts(self) -> Counts:
        """Return each queue's capacity in packets; 0 for queues limited by bytes or unbounded."""
        return np.array(
            [self._shape_of(port).queue_pkts for port in range(2 * len(self._topology.links))], np.uint64
        )

    @property
    def _asked(self) -> NetlinkSocket:
        if self._route is None:
            raise RunError("accessing the links between Open vSwitch's bridges: they do not exist")
        return self._route

    def _make_veths(self) -> None:
        """Make the links between switches; FabricNet made the others."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for number, link in enumerate(self._topology.links):
                a, b = (self._bridge_end(number, node) for node in link.ends)
                if not a:
                    continue
                veth = rtnl.Veth(a, b, os.getpid(), local_mac(_MAC_BASE + number), GROUP)
                rtnl.add_veth(self._asked, veth)
                self._pairs += 1
                rtnl.set_up(self._asked, socket.if_nametoindex(b))
                for name in (a, b):
                    offloads_off(control, name, tx_checksum=True)

    def _bridge_end(self, link: int, node: int) -> str:
        """Return the name of a switch's interface; empty for a host's."""
        return interface(self._topology, self._ports, node, link) if node in self._ports.links else ""

    def _find_interfaces(self, pids: Mapping[int, int]) -> None:
        by_name = {name: index for index, name in socket.if_nameindex()}
        self._place = {-1: {}}
        for port, node, link in self._transmitters():
            name = self._bridge_end(link, node)
            if name:
                self._ifindex[port] = by_name[name]
                self._place[-1][by_name[name]] = port
        for host, pid in pids.items():
            self._find_nics(host, pid)

    def _find_nics(self, host: int, pid: int) -> None:
        nics = self._topology.nics_of(host)
        self._hosts[host], found = open_nics(pid, nics)
        self._place[host] = {index: uplink(nic.link) for nic, index in zip(nics, found, strict=True)}
        self._ifindex.update({port: index for index, port in self._place[host].items()})

    def _transmitters(self) -> Iterator[tuple[int, int, int]]:
        """Yield each port, the node that transmits there, and its link."""
        for number, link in enumerate(self._topology.links):
            yield uplink(number), link.a, number
            yield downlink(number), link.b, number

    def _shape(self) -> None:
        for port in self._ifindex:
            add_shape(self._socket_of(port), self._ifindex[port], self._shape_of(port))

    def _shape_of(self, port: int) -> Shape:
        link = self._topology.links[port // 2]
        of_host = port % 2 == 0 and link.a not in self._ports.links
        return (nic_shape if of_host else switch_shape)(self._link, link.speed)

    def _socket_of(self, port: int) -> NetlinkSocket:
        link = self._topology.links[port // 2]
        return self._hosts[link.a] if port % 2 == 0 and link.a in self._hosts else self._asked


def _at_once(sock: NetlinkSocket) -> tuple[float, list[tuple[int, Counters]]]:
    """Return the time of reading and all queue counters; repeat a reading that was interrupted.

    If other threads had the CPU during a reading, the time of each counter is unknown.
    """
    for _ in range(_MAX_LOOKS):
        asked_s = time.monotonic()
        found = list(read_queues(sock))
        if time.monotonic() - asked_s < _AT_ONCE_S:
            break
    return asked_s, found


def bridge_ports(topology: Topology) -> Mapping[int, Mapping[int, str]]:
    """Return each switch's interfaces by OpenFlow port number."""
    ports = SwitchPorts(topology)
    return {
        switch: {number: interface(topology, ports, switch, link) for number, link in enumerate(links, 1)}
        for switch, links in ports.links.items()
    }


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
