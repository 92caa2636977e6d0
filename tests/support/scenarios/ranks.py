"""Flows of different sizes at one bottleneck between real hosts that stamp ranks, in private namespaces.

Two hosts send to the third. Every TCP segment is recorded inside the sender's namespace, after the program
that stamps it, and every acknowledgement before its kernel sees it.
"""

from __future__ import annotations

import math
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import topos
from engines import kernel_hosts
from engines.emulation.congestion.ranks import HIDE_SACKS, STAMP, on_interfaces
from engines.emulation.congestion.registration import COUNTERS, BuiltIn, Registered, registered
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.hosts.hosts import HostOptions
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel.namespaces import HostRef, call_in_netns
from engines.emulation.sandbox.inside import Caller, Inside
from engines.emulation.traffic.native import NativeDriver
from model.flows import FIRST_CPORT, FIRST_PORT, PlannedFlow
from model.network_plan import by_rank
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec

RATE_MBPS = 10.0
FRAME = 1514
STAR = topos.build("star", {"n": 3})
ETH_P_ALL, PACKET_OUTGOING = 3, 4
END_S = 60.0
STACK = StackSpec(initial_window=12, min_rto_ms=30, delayed_ack_ms=0, max_window=15)


class Frame(NamedTuple):
    """A frame of TCP at a host. `number` is the sequence number of one that leaves, else the acknowledgement;
    `payload` is -1 of a SYN."""

    t_s: float
    leaves: bool
    client_port: int
    number: int
    payload: int
    identification: int


def flows(long_bytes: int, short_bytes: int, shorts: int, every_s: float) -> list[PlannedFlow]:
    """Return a long flow of the first host and short flows of the second, all to the third."""
    first, second, receiver = (STAR.nodes[host].name for host in STAR.hosts)
    ips = {STAR.nodes[nic.host].name: nic.ip for nic in STAR.nics}
    sent = [(first, long_bytes, 0.0), *((second, short_bytes, 0.5 + i * every_s) for i in range(shorts))]
    return [
        PlannedFlow(
            i, src, receiver, ips[src], ips[receiver], FIRST_PORT + i, FIRST_CPORT + i, cc="mintcp",
            size_bytes=size, start_s=start_s,
        )
        for i, (src, size, start_s) in enumerate(sent)
    ]  # fmt: skip


def completions(inside: Inside) -> int:
    """Report the flows' completion times in s, the programs' counts, and the frames at the first sender."""
    request = inside.request
    planned = flows(*request["flows"])
    link = LinkSpec(
        RATE_MBPS, host_delay_us=2500, queue_bytes=request["queue_pkts"] * FRAME, nic_queue_pkts=1000,
        discipline=request["discipline"],
    )  # fmt: skip
    spec = RunSpec(link, TopologySpec("star", {"n": 3}), stack=STACK)
    plane = DATAPLANES["fabric"].make(spec, STAR, Path("/tmp"), Caller())
    options = HostOptions(
        kernel_hosts.sysctls("mintcp"), metrics=kernel_hosts.route_metrics(STACK), single_segments=True
    )
    frames: list[Frame] = []
    with ExitStack() as stack:
        mintcp = _mintcp(stack)
        net = stack.enter_context(FabricNet(STAR, plane, options))
        hosts = {host.name: host for host in net.host_refs()}
        mintcp.admit(hosts.values())
        wanted = [*([STAMP] if by_rank(link.discipline) else []), HIDE_SACKS]
        programs = stack.enter_context(on_interfaces(wanted, hosts, STAR))
        stack.enter_context(recorded(hosts[planned[0].src], frames))
        driver = stack.enter_context(NativeDriver(planned, hosts, sizes_map=programs.sizes_map))
        driver.open()
        driver.connect(20.0)
        driver.release()
        _wait(driver, planned)
        done = driver.completed_s()
        programs.check()
        again = driver.retransmitted()
        counts = programs.counts()
    inside.report({"completed_s": done, "retransmitted": again, "counts": counts, "frames": frames})
    return 0


def _mintcp(stack: ExitStack) -> Registered | BuiltIn:
    """Register minTCP for the time of the test, unless the kernel has it, as a guest's does."""
    settings = {"mintcp": STACK.max_window}
    if COUNTERS.exists():
        return BuiltIn(settings, settings)
    return stack.enter_context(registered(settings, settings))


def _wait(driver: NativeDriver, planned: Sequence[PlannedFlow]) -> None:
    end_s = time.monotonic() + END_S
    while any(map(math.isnan, driver.completed_s())):
        if time.monotonic() > end_s:
            raise TimeoutError(f"{len(planned)} flows did not end within {END_S:g} s")
        time.sleep(0.05)


@contextmanager
def recorded(host: HostRef, frames: list[Frame]) -> Iterator[None]:
    """Record the frames of TCP at the host's interface while the context lasts."""
    tap = call_in_netns(
        host.pid, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    )
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    tap.settimeout(0.1)
    stopping = threading.Event()

    def read() -> None:
        while not stopping.is_set():
            try:
                data, address = tap.recvfrom(2048)
            except TimeoutError:
                continue
            if frame := _parsed(data, address[2] == PACKET_OUTGOING):
                frames.append(frame)

    reader = threading.Thread(target=read, name="tap")
    reader.start()
    try:
        yield
    finally:
        stopping.set()
        reader.join()
        tap.close()


def _parsed(data: bytes, leaves: bool) -> Frame | None:
    if len(data) < 54 or data[12:14] != b"\x08\x00" or data[23] != socket.IPPROTO_TCP:
        return None
    total, identification = struct.unpack_from(">HH", data, 16)
    sport, dport, sequence, acknowledged = struct.unpack_from(">HHII", data, 34)
    payload = total - 20 - (data[46] >> 4) * 4
    if data[47] & 2:  # SYN: the first byte follows it
        sequence, payload = sequence + 1, -1
    if leaves:
        return Frame(time.monotonic(), True, sport, sequence, payload, identification)
    return Frame(time.monotonic(), False, dport, acknowledged, payload, identification)
