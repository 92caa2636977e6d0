"""Hosts in the kernel: a network namespace, a process that holds it, NICs, addresses and routes.

A few threads enter the namespaces and configure them without any shell command (kernel/netns.py). 128 hosts
take 0.1 s; stock Mininet's shells alone take 0.8 s. A host sends every packet to one gateway with a permanent
MAC entry, so no ARP is sent, unless the data plane answers ARP. IPv6 is off before the first interface
exists, so there is no neighbour or multicast discovery either.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

from common.errors import HostUnfitError, RunError
from engines.emulation.kernel import rtnl
from engines.emulation.kernel.netlink import NetlinkSocket
from engines.emulation.kernel.netns import enter_netns, sysctl_path
from engines.emulation.kernel.offload import offloads_off
from engines.emulation.sandbox.mounts import CLONE_NEWNET, unshare
from engines.kernel_hosts import RouteMetrics
from topos.topology import Nic

T = TypeVar("T")
R = TypeVar("R")

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
                if not arp:
                    rtnl.add_neighbour(route, ifindex, GATEWAY_IP, GATEWAY_MAC)
                if number == 0:
                    _add_default(route, ifindex, nic, rtnl.RT_TABLE_MAIN, arp, metrics)
                if len(nics) > 1:
                    _add_default(route, ifindex, nic, FIRST_TABLE + number, arp, metrics)
                    rtnl.add_source_rule(route, nic.ip, FIRST_TABLE + number)
    except OSError as error:
        raise RunError(f"configuring {nics[0].name if nics else 'a host'} (pid {pid}): {error}") from error


def _add_default(
    route: NetlinkSocket, ifindex: int, nic: Nic, table: int, arp: bool, metrics: RouteMetrics
) -> None:
    if arp:
        rtnl.add_link_route(route, ifindex, nic.ip, table, metrics)
    else:
        rtnl.add_default_route(route, ifindex, GATEWAY_IP, nic.ip, table, metrics)


def read_sysctls(pids: Iterable[int], names: Sequence[str]) -> list[dict[str, str]]:
    """Return the sysctls in each namespace with normalised blanks; missing sysctls are omitted."""

    def read(pid: int) -> dict[str, str]:
        enter_netns(pid)
        paths = {name: sysctl_path(name) for name in names}
        return {name: " ".join(path.read_text().split()) for name, path in paths.items() if path.exists()}

    return in_threads(read, list(pids))


def in_threads(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return `[work(item) for item in items]`, computed by a few temporary threads with their own namespaces.

    The first exception stops the remaining work and is raised here.
    """
    results: dict[int, R] = {}
    failures: list[BaseException] = []
    count = max(1, min(os.cpu_count() or 1, 4, len(items) // 16))

    def walk(first: int) -> None:
        try:
            for position in range(first, len(items), count):
                if failures:
                    return
                results[position] = work(items[position])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=walk, args=(first,), name="hosts") for first in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [results[position] for position in range(len(items))]


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
    return f"; the kernel allows {value} in the machine's own namespace only, allow it everywhere with: "
