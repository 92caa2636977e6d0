"""Hosts in the kernel: a network namespace, a process that holds it, NICs, addresses and routes.

A few threads enter the namespaces and configure them without any shell command (kernel/namespaces.py). 128
hosts take 0.1 s; stock Mininet's shells alone take 0.8 s. A host sends every packet to one gateway with a
permanent MAC entry, so no ARP is sent, unless the data plane answers ARP. IPv6 is off before the first
interface exists, so there is no neighbour or multicast discovery either.

Receive packet steering runs the hosts' TCP on other CPUs than the fabric's thread. Without steering, the
receiving host's whole stack runs inside the fabric's system calls, on the fabric's CPU
(Documentation/networking/scaling.rst). Linux >= 6.3 takes a default mask per namespace before a device
exists. On older kernels the mask is written for each device in that namespace's sysfs. What hosts send is
received on the fabric's CPU, whose thread reads it next.

Queue disciplines at the link's rate may be on every NIC. TCP limits what it has in such a queue (TCP small
queues, tcp_small_queue_check in net/ipv4/tcp_output.c), as on a machine with a physical NIC. A veth without a
queue discipline accepts every packet at once.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import select
import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from common.errors import HostUnfitError, RunError
from controllers.routing import reorders
from engines import kernel_hosts
from engines.emulation.dataplanes.dataplane import Counts, Cpus
from engines.emulation.kernel import rtnl
from engines.emulation.kernel.namespaces import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    MS_NODEV,
    MS_NOSUID,
    HostRef,
    enter_netns,
    in_threads,
    map_in_netns,
    mount,
    sysctl_path,
    unshare,
)
from engines.emulation.kernel.netlink import NetlinkSocket
from engines.emulation.kernel.proc import reserve_fds
from engines.emulation.kernel.rtnl import offloads_off
from engines.emulation.kernel.shaping import add_shape, nic_shape, open_nics, read_queues
from engines.kernel_hosts import RouteMetrics
from model import tuning
from model.flows import PlannedFlow
from model.links import uplink
from model.spec import LinkSpec, RunSpec
from topos.topology import Nic, Topology

GATEWAY_IP = "10.255.255.254"
GATEWAY_MAC = "02:ff:ff:ff:ff:fe"
NO_METRICS = RouteMetrics()
FIRST_TABLE = 100
"""Routing table of NIC 0 of a multi-homed host; NIC n uses the n-th table after it."""

_QUIET: Mapping[str, str] = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
    "net.ipv4.conf.all.rp_filter": "0",
    "net.ipv4.conf.default.rp_filter": "0",
}


@dataclass(frozen=True)
class HostOptions:
    """Configuration of all hosts.

    `sysctls` (name with dots -> value) are written in every host's namespace before it has an interface, so
    `net.core.rps_default_mask` takes effect. With `tx_checksum_offload` off, hosts' kernels compute
    checksums; data planes that do not carry virtio headers need that. `metrics` are those of hosts' routes.
    With `single_segments` a program at the interface sees every segment by itself, as it will be sent.
    """

    sysctls: Mapping[str, str] = field(default_factory=dict)
    tx_checksum_offload: bool = True
    mtu: int = 1500
    metrics: RouteMetrics = NO_METRICS
    single_segments: bool = False


def start_namespaces(names: Sequence[str], sysctls: Mapping[str, str]) -> list[int]:
    """Create a network namespace per name and return the pids of the processes that hold them.

    Each namespace is created from the caller's namespace, because some sysctls there apply to its children
    (`net.ipv4.tcp_child_ehash_entries`) but not to grandchildren.

    Raises HostUnfitError if the kernel refuses a namespace or a sysctl.
    """
    sleep = shutil.which("sleep")
    if sleep is None:
        raise HostUnfitError("starting hosts: the program sleep(1) is missing; run: apt install coreutils")

    caller = threading.get_native_id()

    def start(name: str) -> int:
        enter_netns(caller)
        unshare(CLONE_NEWNET)
        for sysctl, value in chain(_QUIET.items(), sysctls.items()):
            _write_sysctl(name, sysctl, value)
        return os.posix_spawn(sleep, ["sleep", "infinity"], {}, file_actions=silent, setsid=True)

    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    silent = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]
    try:
        return in_threads(start, names)
    finally:
        os.close(null)


def configure(
    pid: int,
    nics: Sequence[Nic],
    tx_checksum: bool,
    arp: bool = False,
    metrics: RouteMetrics = NO_METRICS,
) -> None:
    """Configure loopback and `nics` in the namespace of `pid`; the calling thread stays in that namespace.

    With several NICs, packets leave by the NIC that has their source address. With `arp` there is no gateway
    and hosts resolve the MAC of every destination.
    """
    enter_netns(pid)
    try:
        with rtnl.route_socket() as route, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            rtnl.set_up(route, rtnl.LOOPBACK)
            for number, nic in enumerate(nics):
                offloads_off(control, nic.name, tx_checksum)
                ifindex = socket.if_nametoindex(nic.name)
                rtnl.add_address(route, ifindex, nic.ip)
                rtnl.set_up(route, ifindex)
                _add_routes(route, ifindex, nic, _tables(number, nics), arp, metrics)
                if len(nics) > 1:
                    rtnl.add_source_rule(route, nic.ip, FIRST_TABLE + number)
    except OSError as error:
        raise RunError(f"configuring {nics[0].name if nics else 'a host'} (pid {pid}): {error}") from error


def _tables(number: int, nics: Sequence[Nic]) -> tuple[int, ...]:
    """Return the routing tables that have a route by NIC `number` of a host."""
    own = (FIRST_TABLE + number,) if len(nics) > 1 else ()
    return (rtnl.RT_TABLE_MAIN, *own) if number == 0 else own


def _add_routes(
    route: NetlinkSocket, ifindex: int, nic: Nic, tables: Iterable[int], arp: bool, metrics: RouteMetrics
) -> None:
    """Add what the kernel deletes when the interface goes down: the gateway's MAC and the default routes."""
    if not arp:
        rtnl.add_neighbour(route, ifindex, GATEWAY_IP, GATEWAY_MAC)
    for table in tables:
        if arp:
            rtnl.add_link_route(route, ifindex, nic.ip, table, metrics)
        else:
            rtnl.add_default_route(route, ifindex, GATEWAY_IP, nic.ip, table, metrics)


@contextmanager
def routes_kept(
    hosts: Mapping[HostRef, Sequence[Nic]], arp: bool, metrics: RouteMetrics, say: Callable[[str], object]
) -> Iterator[None]:
    """Add the routes of a host's interface again each time somebody takes it up.

    On a host with a subnet the kernel does so itself; hosts here have a /32 and a gateway. `say` gets a line
    for routes that cannot be added. Raises RunError if a namespace cannot be entered.
    """

    def opened(nics: Sequence[Nic]) -> tuple[NetlinkSocket, NetlinkSocket, dict[int, tuple[int, Nic]]]:
        events, requests = rtnl.route_socket(), rtnl.route_socket()
        events.join(rtnl.LINK_EVENTS)
        at = {socket.if_nametoindex(nic.name): (number, nic) for number, nic in enumerate(nics)}
        return events, requests, at

    reserve_fds(2 * len(hosts))
    found = map_in_netns([(host.pid, partial(opened, nics)) for host, nics in hosts.items()])
    by_fd = {sockets[0].fileno(): (host, *sockets) for host, sockets in zip(hosts, found, strict=True)}
    wake = os.eventfd(0, os.EFD_CLOEXEC)

    def follow() -> None:
        with select.epoll() as poll:
            for fd in (wake, *by_fd):
                poll.register(fd, select.EPOLLIN)
            while True:
                for fd, _ in poll.poll():
                    if fd == wake:
                        return
                    host, events, requests, at = by_fd[fd]
                    try:
                        for ifindex in set(rtnl.taken_up(events)) & at.keys():
                            number, nic = at[ifindex]
                            tables = _tables(number, hosts[host])
                            _add_routes(requests, ifindex, nic, tables, arp, metrics)
                    except OSError as error:
                        if error.errno != errno.ENETDOWN:  # it is down again already
                            say(f"adding the routes of {host.name} again: {error}")

    thread = threading.Thread(target=follow, name="routes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        os.eventfd_write(wake, 1)
        thread.join()
        os.close(wake)
        for events, requests, _ in found:
            events.close()
            requests.close()


def read_sysctls(pids: Iterable[int], names: Sequence[str]) -> list[dict[str, str]]:
    """Return the sysctls in each namespace with normalised blanks; missing sysctls are omitted."""

    def read(pid: int) -> dict[str, str]:
        enter_netns(pid)
        paths = {name: sysctl_path(name) for name in names}
        return {name: " ".join(path.read_text().split()) for name, path in paths.items() if path.exists()}

    return in_threads(read, list(pids))


def _write_sysctl(host: str, name: str, value: str) -> None:
    path = sysctl_path(name)
    if name in _QUIET and not path.exists():
        return  # The kernel has no IPv6.
    try:
        path.write_text(value)
    except OSError as error:
        raise HostUnfitError(
            f"setting {name}={value} in the namespace of {host}: {error.strerror}{_hint(name, value, error)}"
        ) from error


def _hint(name: str, value: str, error: OSError) -> str:
    if name != "net.ipv4.tcp_congestion_control":
        return "; the kernel may be too old for it" if error.errno == errno.ENOENT else ""
    if error.errno == errno.ENOENT:
        return f"; this kernel has no congestion control {value}, try: modprobe tcp_{value}"
    return f"; {restricted(value)}"


def restricted(cc: str) -> str:
    """Return why hosts cannot have this default congestion control (by the kernel's name), and what to do."""
    return (
        f"the kernel allows {cc} in the machine's own namespace only; allow it everywhere with: "
        f'sysctl -w net.ipv4.tcp_allowed_congestion_control="reno {cc}"'
    )


DEFAULT_MASK = "net.core.rps_default_mask"


def steering_sysctls(mask: str) -> Mapping[str, str]:
    """Return the sysctls for a host without NICs; empty if the kernel has no default mask."""
    return {DEFAULT_MASK: mask} if mask and sysctl_path(DEFAULT_MASK).exists() else {}


def steer_hosts(pids: Sequence[int], cpus: Cpus) -> None:
    """Set which CPUs receive packets for these hosts, once their NICs exist.

    The CPUs of `receive_mask` receive for most hosts; those of `core_mask` for an evenly spread
    `core_share` of them. Raises as `steer`.
    """
    at_core = [pid for number, pid in enumerate(pids) if is_chosen(number, cpus.core_share)]
    if cpus.receive_mask and not steering_sysctls(cpus.receive_mask):
        steer(pids, cpus.receive_mask)
    if at_core:
        steer(at_core, cpus.core_mask)


def is_chosen(number: int, share: float) -> bool:
    """Return whether item `number` (from 0) belongs to an evenly spread `share` of all items."""
    return int((number + 1) * share) > int(number * share)


def steer_ends(mask: str) -> None:
    """Receive what hosts send on the CPUs of `mask`, at the run's veth ends, in the run's namespace.

    Raises RunError if sysfs cannot be written.
    """
    if not mask:
        return
    try:
        _write_masks(mask)
    except OSError as error:
        raise RunError(f"steering packets from hosts to CPUs {mask}: {error}") from error


def _write_masks(mask: str) -> None:
    for queue in Path("/sys/class/net").glob("*-eth*/queues/rx-*/rps_cpus"):
        queue.write_text(mask)


def steer(pids: Sequence[int], mask: str) -> None:
    """Write `mask` (hexadecimal) to every receive queue of the NICs in the namespaces of `pids`.

    Raises RunError if a namespace's sysfs cannot be written.
    """

    def write(pid: int) -> None:
        unshare(CLONE_NEWNS)
        enter_netns(pid)
        mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV)
        try:
            _write_masks(mask)
        except OSError as error:
            raise RunError(f"steering received packets of pid {pid} to CPUs {mask}: {error}") from error

    in_threads(write, pids)


_NO_METRICS_SAVE = {"net.ipv4.tcp_no_metrics_save": "1"}
"""A connection must not reuse what an earlier one learnt."""
_ECN = {"net.ipv4.tcp_ecn": "1"}
"""Request and accept ECN (Documentation/networking/ip-sysctl.rst); by default hosts only accept it."""

_REORDERING = {"net.ipv4.tcp_recovery": "5", "net.ipv4.tcp_min_rtt_wlen": "0"}
"""Do not treat reordering as loss (docs/decisions.md). RACK waits for a quarter of the minimum RTT,
multiplied by the reordering that DSACKs reported. With a window of 0 s the minimum is the current RTT instead
of the empty network's. 5 is RACK without the threshold of three duplicate ACKs; tcp_reordering does little.
Source: net/ipv4/tcp_recovery.c, Documentation/networking/ip-sysctl.rst."""


def sysctls_of(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> dict[str, str]:
    """Return sysctls (name with dots -> value) for every host; the spec's own sysctls override them."""
    ecn = _ECN if spec.link.marks else {}
    reordering = _REORDERING if reorders(spec.routing) else {}
    needed_by_cc = kernel_hosts.sysctls(spec.transport.cc)
    return {**_NO_METRICS_SAVE, **ecn, **reordering, **tuning.default(spec, topology, flows), **needed_by_cc}


class HostQueues:
    """Queue disciplines on hosts' NICs: `make`, then `drops`, then `close`. They end with the namespaces."""

    def __init__(self, topology: Topology, link: LinkSpec) -> None:
        self._topology = topology
        self._link = link
        self._sockets: list[NetlinkSocket] = []
        self._ports: list[dict[int, int]] = []
        """Interface index -> port, for each host."""

    def make(self, pids: Mapping[int, int]) -> None:
        """Add the queue disciplines. Raises RunError that names the host whose kernel refuses."""
        for host, pid in pids.items():
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
                for ifindex, (_, _, drops, _) in read_queues(sock):
                    if ifindex in ports:
                        table[ports[ifindex]] = drops
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
