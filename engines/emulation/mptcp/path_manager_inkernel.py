"""Further subflows on kernels (5.6 to 5.18) with only the in-kernel MPTCP path manager.

Every server announces its own address with N-1 further ports (`signal` endpoints), and the peer's kernel
joins one subflow to each. Differences to path_manager.py: at most 8 further subflows; the kernel chooses
client ports, so ECMP choices differ between runs; all MPTCP connections get subflows, even iperf3's control
connection; failures are not retried.
Source: net/mptcp/pm_netlink.c (pm_kernel.c since 6.16), MPTCP_PM_ADDR_MAX.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import partial

from common.errors import HostUnfitError, RunError, UsageError
from engines.emulation.kernel import genetlink, netlink
from engines.emulation.kernel.genetlink import Family
from engines.emulation.kernel.netns import HostRef, map_in_netns, set_sysctls
from engines.emulation.mptcp import mptcp_genl
from engines.emulation.mptcp.mptcp_watch import Accept, MptcpWatcher

MAX_EXTRA_SUBFLOWS = 8


class SignalPathManager(MptcpWatcher):
    """Replaces PathManager if `support()` returns IN_KERNEL.

    `servers` maps hosts that accept connections to their IPv4 address. Ports `first_port` ..
    `first_port + subflows - 2` must be free there. A host that is client and server also announces on the
    connections it opened, and its servers join to it. `limits` then stop both sides at N-1, but a race may
    leave a connection with fewer.

    Raises UsageError above 9 subflows, HostUnfitError without MPTCP, RunError if the kernel refuses an
    endpoint.
    """

    def __init__(
        self,
        hosts: Sequence[HostRef],
        subflows: int,
        accept: Accept,
        servers: Mapping[HostRef, str],
        first_port: int = 9001,
    ) -> None:
        extra = subflows - 1
        if not 0 <= extra <= MAX_EXTRA_SUBFLOWS:
            raise UsageError(
                f"{subflows} subflows: without userspace path management (Linux >= 5.19) only "
                f"1 to {MAX_EXTRA_SUBFLOWS + 1} are possible; choose fewer --subflows"
            )
        set_sysctls(hosts, _sysctls())
        family = genetlink.resolve(mptcp_genl.FAMILY_NAME)
        if family is None:
            raise HostUnfitError(mptcp_genl.support().advice or "this kernel has no mptcp_pm netlink family")
        super().__init__(hosts, subflows, accept)
        try:
            ports = range(first_port, first_port + extra)
            configure_signal(family, hosts, servers, ports)
        except BaseException:
            self.close()
            raise


def configure_signal(
    family: Family, hosts: Sequence[HostRef], servers: Mapping[HostRef, str], ports: range
) -> None:
    """Set limits to len(ports) on all `hosts`, and announce `ports` on `servers`, replacing earlier
    announcements."""

    def configure(host: HostRef) -> None:
        commands = [_flush(), _limits(len(ports))]
        if host in servers:
            commands += [_signal(servers[host], port) for port in ports]
        with netlink.NetlinkSocket(netlink.NETLINK_GENERIC) as sock:
            for command in commands:
                sock.request(family.kind, command)

    def job(host: HostRef) -> None:
        try:
            configure(host)
        except OSError as error:
            raise RunError(f"announcing MPTCP ports {ports} on {host.name}: {error.strerror}") from error

    map_in_netns([(host.pid, partial(job, host)) for host in hosts])


def _sysctls() -> dict[str, str]:
    # The kernel repeats a lost announcement after add_addr_timeout, by default 120 s.
    values = {"net.mptcp.add_addr_timeout": "1", **mptcp_genl.resilience_sysctls()}
    choice = mptcp_genl.userspace_sysctl()
    if choice is not None:
        in_kernel = {mptcp_genl.SYSCTL_BY_NAME: "kernel", mptcp_genl.SYSCTL_BY_NUMBER: "0"}
        values[choice[0]] = in_kernel[choice[0]]
    return values


def _flush() -> bytes:
    return genetlink.frame(mptcp_genl.CMD_FLUSH_ADDRS, mptcp_genl.VERSION)


def _limits(extra: int) -> bytes:
    count = struct.pack("=I", extra)
    return genetlink.frame(
        mptcp_genl.CMD_SET_LIMITS,
        mptcp_genl.VERSION,
        netlink.attr(mptcp_genl.ATTR_RCV_ADD_ADDRS, count),
        netlink.attr(mptcp_genl.ATTR_SUBFLOWS, count),
    )


def _signal(ip: str, port: int) -> bytes:
    address = mptcp_genl.address_attr(mptcp_genl.ATTR_ADDR, ip, port, flags=mptcp_genl.ADDR_FLAG_SIGNAL)
    return genetlink.frame(mptcp_genl.CMD_ADD_ADDR, mptcp_genl.VERSION, address)
