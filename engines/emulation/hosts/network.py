"""FabricNet: a Mininet network with real hosts whose links and switches belong to a data plane.

    with FabricNet(topology, dataplane) as net:         # inside private namespaces: isolation.py
        net.get("p0e0h0").cmd("ping -c1 10.1.0.2")
        net.pingAll()
        mininet.cli.CLI(net)

Only the hosts' NICs exist in the kernel, as veth pairs. The host's end `p0e0h0-eth0` is in its namespace. The
other end `p0e0-eth1`, named like the switch's port, is in the run's namespace; the data plane reads it.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Sequence
from typing import Self

from mininet.log import error, output, setLogLevel
from mininet.net import Mininet

from common.errors import HostUnfitError, RunError
from engines.emulation.dataplanes.dataplane import DataPlane, NoDataPlane, Wiring
from engines.emulation.hosts.hosts import HostOptions, configure, in_threads, read_sysctls, start_namespaces
from engines.emulation.hosts.iperf_pair import format_rate, iperf_pair
from engines.emulation.hosts.nodes import FabricHost, FabricIntf, FabricLink, FabricSwitch
from engines.emulation.kernel import rtnl
from engines.emulation.kernel.netns import HostRef
from engines.emulation.kernel.offload import offloads_off
from topos.topology import Nic, Topology

VETH_GROUP = 0x7EFA
_FDS_PER_HOST = 6
_RESERVED_FDS = 1024
_END_S = 10.0


class FabricNet(Mininet):  # type: ignore[misc]
    """`topology` with real hosts, joined by `dataplane`; requires a private network namespace.

    `build()` makes the hosts and their NICs, `start()` also starts the data plane, `stop()` removes
    everything. Raises HostUnfitError if the kernel refuses what a host needs, RunError otherwise.
    """

    hosts: list[FabricHost]
    switches: list[FabricSwitch]
    links: list[FabricLink]
    nameToNode: dict[str, FabricHost | FabricSwitch]

    def __init__(
        self, topology: Topology, dataplane: DataPlane | None = None, options: HostOptions | None = None
    ) -> None:
        self.topology = topology
        self.dataplane = dataplane or NoDataPlane()
        self.options = options or HostOptions()
        self.ifindexes: tuple[int, ...] = ()
        """Interface index of the run-side veth of each of `topology.nics`."""
        self.sysctls: dict[str, str] = {}
        """The values of `options.sysctls` that are in effect on every host."""
        self._holders: list[int] = []
        Mininet.inited = True  # its init() writes machine-wide sysctls (file-max, pty.max, ...)
        setLogLevel("output")
        super().__init__(topo=None, build=False, controller=None)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def build(self) -> None:
        """Make hosts with their namespaces, NICs, addresses and routes."""
        hosts, nics = self.topology.hosts, self.topology.nics
        _raise_limits(len(hosts))
        names = [self.topology.nodes[i].name for i in hosts]
        self._holders = start_namespaces(names, self.options.sysctls)
        pids = self._pids()
        self._add_nodes(pids)
        self._add_links()
        checksums = self.options.tx_checksum_offload and self.dataplane.partial_checksums
        self._add_veths(pids, checksums)
        jobs = [(pids[host], self.topology.nics_of(host)) for host in hosts]
        answers, metrics = self.dataplane.answers_arp, self.options.metrics
        in_threads(lambda job: configure(*job, checksums, answers, metrics), jobs)
        self.sysctls = self._sysctls_in_force()
        by_name = {name: index for index, name in socket.if_nameindex()}
        self.ifindexes = tuple(by_name[self._run_end(nic)] for nic in nics)
        self.built = True

    def start(self) -> None:
        """Build if needed, then start the data plane."""
        try:
            if not self.built:
                self.build()
            self.dataplane.start(Wiring(self.ifindexes, self._pids()))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the data plane, end the hosts' shells and holders, delete every interface. Idempotent."""
        try:
            self.dataplane.stop()
        finally:
            if self.terms:
                self.stopXterms()
            for node in (*self.hosts, *self.switches):
                node.terminate()
            if self._holders:
                with rtnl.route_socket() as route:
                    rtnl.delete_group(route, VETH_GROUP)
                _end_all(self._holders)
            self._holders = []
            self.hosts, self.switches, self.links = [], [], []
            self.nameToNode = {}
            self.built = False

    def host_refs(self) -> list[HostRef]:
        """Return the hosts in the topology's order, as HostRef for kernel/netns.py."""
        return [HostRef(host.name, host.holder) for host in self.hosts]

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Take both directions of a link down or up, for the CLI's `link src dst up|down`.

        Prints a wrong name or status, as Mininet does.
        """
        for name in (src, dst):
            if name not in self.nameToNode:
                error(f"{name} not in network: see `nodes`\n")
                return
        between = self.linksBetween(self.nameToNode[src], self.nameToNode[dst])
        if not between:
            error(f"src and dst not connected: {src} {dst}; see `net`\n")
            return
        if status not in ("up", "down"):
            error(f"link status must be up or down, not {status}\n")
            return
        for link in between:
            self.set_link(link, status == "up")

    def set_link(self, link: FabricLink, up: bool) -> None:
        """Take both directions of a link down or up."""
        self.dataplane.set_link(link.index, up)
        link.up = up

    def iperf(
        self,
        hosts: Sequence[FabricHost] | None = None,
        l4Type: str = "TCP",
        udpBw: str = "10M",
        fmt: str | None = None,
        seconds: int = 5,
        port: int = 5001,
    ) -> list[str]:
        """Measure throughput from the first host to the second; return [server, client] as Mininet does.

        Uses iperf3: Mininet's own version waits forever for output that current iperf 2 does not print.
        `fmt` is k, m or g (bits). Raises RunError if iperf3 fails or does not end.
        """
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        udp = udpBw if l4Type == "UDP" else ""
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        sent_bps, received_bps = iperf_pair(client, server, seconds, port, udp)
        speeds = [format_rate(received_bps, fmt), format_rate(sent_bps, fmt)]
        result = [udpBw, *speeds] if udp else speeds
        output(f"*** Results: {result}\n")
        return result

    def _add_nodes(self, pids: dict[int, int]) -> None:
        for i in self.topology.hosts:
            self.hosts.append(FabricHost(self.topology.nodes[i].name, pids[i]))
        for i in self.topology.switches:
            self.switches.append(FabricSwitch(self.topology.nodes[i].name, self))
        self.nameToNode = {node.name: node for node in (*self.hosts, *self.switches)}

    def _add_links(self) -> None:
        nic_of = {nic.link: nic for nic in self.topology.nics}
        for index, ends in enumerate(self.topology.links):
            a, b = (self.nameToNode[self.topology.nodes[end].name] for end in (ends.a, ends.b))
            link = FabricLink(index)
            nic = nic_of.get(index)
            ip, mac = (nic.ip, nic.mac) if nic else ("", "")
            link.intf1 = FabricIntf(f"{a.name}-eth{a.newPort()}", a, link, ip, mac)
            link.intf2 = FabricIntf(f"{b.name}-eth{b.newPort()}", b, link)
            self.links.append(link)

    def _run_end(self, nic: Nic) -> str:
        return str(self.links[nic.link].intf2.name)

    def _pids(self) -> dict[int, int]:
        """Return the pids of the processes that hold the hosts' namespaces, by host node."""
        return dict(zip(self.topology.hosts, self._holders, strict=True))

    def _add_veths(self, pids: dict[int, int], checksums: bool) -> None:
        segments = int(self.dataplane.queues_at_hosts or self.options.single_segments)
        with rtnl.route_socket() as route, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for nic in self.topology.nics:
                ends = (self._run_end(nic), nic.name, pids[nic.host], nic.mac)
                veth = rtnl.Veth(*ends, VETH_GROUP, self.options.mtu, segments)
                try:
                    rtnl.add_veth(route, veth)
                    offloads_off(control, veth.name, checksums)
                except OSError as failure:
                    raise RunError(f"making veth {veth.name} - {veth.peer}: {failure}") from failure

    def _sysctls_in_force(self) -> dict[str, str]:
        names = list(self.options.sysctls)
        if not names:
            return {}
        found = read_sysctls((host.holder for host in self.hosts), names)
        for host, values in zip(self.hosts, found, strict=True):
            if values != found[0]:
                raise HostUnfitError(
                    f"reading sysctls: {host.name} has {values}, but {self.hosts[0].name} has {found[0]}"
                )
        return found[0]


def _raise_limits(hosts: int) -> None:
    """Allow a pty and pipes per host, but no more: programs that close all descriptors pay per slot."""
    needed = _RESERVED_FDS + _FDS_PER_HOST * hosts
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    ceiling = hard if hard == resource.RLIM_INFINITY else max(hard, needed)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, ceiling))
    except (OSError, ValueError) as failure:
        raise HostUnfitError(
            f"{needed} open files are needed for {hosts} hosts, but the limit is {hard}: {failure}; "
            f"run: ulimit -Hn {needed}"
        ) from failure


def _end_all(pids: Sequence[int]) -> None:
    """Kill and reap the holders. Only this code reaps them, so their pids cannot be reused before."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _END_S
    for pid in pids:
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                raise RunError(f"ending host namespaces: process {pid} did not end after SIGKILL")
            time.sleep(0.0005)
