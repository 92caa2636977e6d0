"""Queues in the hosts' kernels: a queue discipline at the link's rate on every NIC.

TCP limits what it has in such a queue (TCP small queues, tcp_small_queue_check in net/ipv4/tcp_output.c), as
on a machine with a physical NIC. A veth without a queue discipline accepts every packet at once.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from common.errors import RunError
from engines.emulation.dataplanes.dataplane import Counts, Wiring
from engines.emulation.kernel.netlink import NetlinkSocket
from engines.emulation.kernel.queue_counters import open_nics, read_queues
from engines.emulation.kernel.shaping import add_shape, nic_shape
from model.network_plan import uplink
from model.spec import LinkSpec
from topos.topology import Topology


class HostQueues:
    """Queue disciplines on hosts' NICs: `make`, then `drops`, then `close`. They end with the namespaces."""

    def __init__(self, topology: Topology, link: LinkSpec) -> None:
        self._topology = topology
        self._link = link
        self._sockets: list[NetlinkSocket] = []
        self._ports: list[dict[int, int]] = []
        """Interface index -> port, for each host."""

    def make(self, wiring: Wiring) -> None:
        """Add the queue disciplines. Raises RunError that names the host whose kernel refuses."""
        for host, pid in wiring.pids.items():
            try:
                self._shape(host, pid)
            except OSError as error:
                name = self._topology.nodes[host].name
                raise RunError(f"adding a queue (HTB) to the NICs of {name}: {error}") from error

    def drops(self) -> Counts:
        """Return packets dropped since the start, one entry per port (switch ports: 0). Raises RunError."""
        table = np.zeros(2 * len(self._topology.links), np.uint64)
        try:
            for sock, ports in zip(self._sockets, self._ports, strict=True):
                for seen in read_queues(sock):
                    if seen.ifindex in ports:
                        table[ports[seen.ifindex]] = seen.drops
        except OSError as error:
            raise RunError(f"reading the counters of hosts' queues: {error}") from error
        return table

    def close(self) -> None:
        """Close the sockets. No effect if nothing was made."""
        for sock in self._sockets:
            sock.close()
        self._sockets, self._ports = [], []

    def _shape(self, host: int, pid: int) -> None:
        nics = self._topology.nics_of(host)
        sock, found = open_nics(pid, nics)
        self._sockets.append(sock)
        self._ports.append({index: uplink(nic.link) for nic, index in zip(nics, found, strict=True)})
        for nic, index in zip(nics, found, strict=True):
            shape = nic_shape(self._link, self._topology.links[nic.link].speed)
            add_shape(sock, index, dataclasses.replace(shape, delay_us=0.0))
