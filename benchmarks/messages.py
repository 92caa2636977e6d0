"""Round trips of small messages between a datapath and its agent, by transport.

    python benchmarks/messages.py [--messages 10000] [--every-us 300] [--chart FILE] [--json]

After Narayan et al., SIGCOMM 2018, who echo 100 000 messages between their kernel module and a process:
* `woken`: a BPF program puts the message into a ring buffer and wakes the agent, as the datapath does after a
  loss; the round trip ends when the agent's answer is in a map, where the datapath reads it.
* `polled`: the same without a wake-up; the agent looks every millisecond, as it does for ordinary reports.
* `netlink`, `unix`: a message and its answer between two processes, over a netlink or a unix datagram socket.
  No kernel module can be loaded here, so a process stands in for the kernel.

The agent is a Python process as in a run. Round trips are in us: median, 95th and 99th percentile. The result
is `suspect` if the hypervisor took or other processes used more than 5 % of the CPU time. Needs root.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.agent_charts import draw_messages
from benchmarks.other_programs import MAX_PCT, OtherPrograms
from common.errors import HostUnfitError, RefabricError, RunError
from engines.emulation.congestion.agent import POLL_MS, update
from engines.emulation.congestion.libbpf import BpfObject, LibbpfError, library
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from engines.provenance import machine

SOURCE = Path(__file__).resolve().parent / "bpf" / "ping.bpf.c"
WOKEN, POLLED, NETLINK, UNIX = TRANSPORTS = ("woken", "polled", "netlink", "unix")
DEADLINE_S = 10.0
_PING = struct.Struct("<2Q")
_ANSWER = struct.Struct("<Q")
_SAMPLE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
NETLINK_USERSOCK = 2
_NLMSG = struct.Struct("=IHHII")


@dataclass(frozen=True)
class Trips:
    """Round trips of one transport in us, and how many messages had no answer."""

    transport: str
    median_us: float
    p95_us: float
    p99_us: float
    messages: int
    lost: int
    status: str


class _Options(ctypes.Structure):
    """struct bpf_test_run_opts of libbpf, up to the fields that are used."""

    _fields_ = (
        ("sz", ctypes.c_size_t), ("data_in", ctypes.c_void_p), ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32), ("data_size_out", ctypes.c_uint32),
        ("ctx_in", ctypes.c_void_p), ("ctx_out", ctypes.c_void_p),
        ("ctx_size_in", ctypes.c_uint32), ("ctx_size_out", ctypes.c_uint32),
        ("retval", ctypes.c_uint32), ("repeat", ctypes.c_int), ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32), ("cpu", ctypes.c_uint32), ("batch_size", ctypes.c_uint32),
    )  # fmt: skip


@contextmanager
def datapath() -> Iterator[BpfObject]:
    """Compile and load the BPF program. Raises HostUnfitError."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "ping.o"
        command = ["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", f"-I/usr/include/{_triplet()}"]
        try:
            done = subprocess.run(
                [*command, "-c", str(SOURCE), "-o", str(target)], capture_output=True, text=True, check=False,
                timeout=60.0,
            )  # fmt: skip
        except FileNotFoundError:
            raise HostUnfitError("compiling a BPF program: no clang; run: sudo setup/install.sh") from None
        if done.returncode:
            raise HostUnfitError(f"compiling {SOURCE.name}: {done.stderr[-500:]}")
        try:
            loaded = BpfObject(target)
            loaded.load()
        except LibbpfError as error:
            raise HostUnfitError(f"{error.strerror}: {' '.join(error.said[-3:])}") from error
    try:
        yield loaded
    finally:
        loaded.close()


def _triplet() -> str:
    return f"{os.uname().machine}-linux-gnu"


class Ring:
    """The sending half: each message is one run of the BPF program."""

    def __init__(self, loaded: BpfObject, wakeup: bool) -> None:
        self._request = (ctypes.c_uint64 * 2)(0, wakeup)
        size = ctypes.sizeof(self._request)
        self._options = _Options(
            sz=ctypes.sizeof(_Options), ctx_in=ctypes.addressof(self._request), ctx_size_in=size
        )
        self._fd = loaded.program_fd("send")

    def send(self, number: int) -> None:
        """Send one message. Raises LibbpfError; RunError if the buffer is full."""
        self._request[0] = number
        arguments = (self._fd, ctypes.byref(self._options))
        library().number("sending a message from kernel mode", "bpf_prog_test_run_opts", *arguments)
        if self._options.retval:
            raise RunError("sending a message: the agent does not empty the ring buffer")


def _ring_agent(events: int, answers: int, wait_ms: int, pipe: Connection) -> None:
    """The agent of a ring buffer: answer in a map, and record the time of each answer."""
    took_ns: list[int] = []

    def hear(_context: int, data: int, size: int) -> int:
        at_ns, number = _PING.unpack(ctypes.string_at(data, size))
        update(answers, 0, _ANSWER.pack(number))
        took_ns.append(time.monotonic_ns() - at_ns)
        return 0

    called = _SAMPLE(hear)
    ring = library().pointer("opening the ring buffer", "ring_buffer__new", events, called, None, None)
    pipe.send("ready")
    while not pipe.poll():
        library().call("ring_buffer__poll", ring, wait_ms)
        library().call("ring_buffer__consume", ring)
    pipe.send(took_ns)
    library().call("ring_buffer__free", ring)


def by_ring(messages: int, every_us: float, wakeup: bool) -> list[int]:
    """Return the round trips in ns through a ring buffer and a map."""
    with datapath() as loaded, ExitStack() as stack:
        ends = loaded.map_fd(b"pings"), loaded.map_fd(b"answers")
        agent = stack.enter_context(_process(_ring_agent, *ends, POLL_MS))
        ring = Ring(loaded, wakeup)
        for number in range(messages):
            ring.send(number)
            time.sleep(every_us / 1e6)
        time.sleep(0.1)
        agent.send("stop")
        return list(_received(agent))


def _echo_agent(ours: socket.socket, pipe: Connection) -> None:
    """The agent of a socket: return each message to its sender."""
    pipe.send("ready")
    while True:
        data, sender = ours.recvfrom(256)
        ours.sendto(data, sender)


def by_socket(messages: int, every_us: float, transport: str) -> list[int]:
    """Return the round trips in ns over two sockets."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        ours, theirs, there = _sockets(transport, Path(folder))
        stack.enter_context(ours)
        stack.enter_context(theirs)
        stack.enter_context(_process(_echo_agent, theirs))
        ours.settimeout(DEADLINE_S)
        took_ns = []
        for number in range(messages):
            began_ns = time.monotonic_ns()
            ours.sendto(_message(transport, number), there)
            data = ours.recv(256)
            took_ns.append(time.monotonic_ns() - began_ns)
            if data[-_ANSWER.size :] != _ANSWER.pack(number):
                raise RunError(f"{transport}: another message came back")
            time.sleep(every_us / 1e6)
        return took_ns


def _sockets(transport: str, folder: Path) -> tuple[socket.socket, socket.socket, Any]:
    """Return our socket, the agent's, and the agent's address."""
    if transport == UNIX:
        pair = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        for number, each in enumerate(pair):
            each.bind(str(folder / str(number)))
        return pair[0], pair[1], str(folder / "1")
    pair = [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_USERSOCK) for _ in range(2)]
    for each in pair:
        each.bind((0, 0))
    return pair[0], pair[1], pair[1].getsockname()


def _message(transport: str, number: int) -> bytes:
    body = _ANSWER.pack(number)
    return body if transport == UNIX else _NLMSG.pack(_NLMSG.size + len(body), 16, 0, 0, 0) + body


@contextmanager
def _process(work: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """Run the agent in a process of its own; return the pipe to it once it is ready."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(*arguments, theirs), daemon=True)
    process.start()
    try:
        if _received(ours) != "ready":
            raise RunError("the agent did not start")
        yield ours
    finally:
        process.kill()
        process.join(DEADLINE_S)


def _received(pipe: Connection) -> Any:
    if not pipe.poll(DEADLINE_S):
        raise RunError(f"the agent did not answer in {DEADLINE_S:g} s")
    return pipe.recv()


def inside(inside: Inside) -> int:
    """Measure in private namespaces, where other processes' CPU time can be distinguished from ours."""
    request = inside.request
    for transport in request["transports"]:
        inside.report(asdict(measured(transport, request["messages"], request["every_us"])))
    return 0


def measured(transport: str, messages: int, every_us: float) -> Trips:
    """Measure one transport. Raises RefabricError."""
    others = OtherPrograms()
    if transport in {WOKEN, POLLED}:
        took_ns = by_ring(messages, every_us, transport == WOKEN)
    else:
        took_ns = by_socket(messages, every_us, transport)
    _, others_pct = others.share()
    if not took_ns:
        raise RunError(f"{transport}: no message was answered")
    return summary(transport, took_ns, messages, others_pct)


def summary(transport: str, took_ns: Sequence[int], messages: int, others_pct: float) -> Trips:
    """Return percentiles of the round trips."""
    ordered = sorted(took_ns)
    at = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1000 for share in (0.5, 0.95, 0.99)]
    status = "suspect" if others_pct > MAX_PCT else "ok"
    return Trips(transport, at[0], at[1], at[2], messages, messages - len(ordered), status)


@click.command()
@click.option("--messages", default=10_000, show_default=True, help="Messages per transport.")
@click.option("--every-us", default=300.0, show_default=True, help="Time between messages.")
@click.option("--transports", default=",".join(TRANSPORTS), show_default=True, help="Measure these.")
@click.option("--chart", type=click.Path(path_type=Path), help="Draw the percentiles into this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(messages: int, every_us: float, transports: str, chart: Path | None, as_json: bool) -> None:
    """Measure round trips of messages and print them."""
    names = transports.split(",")
    if unknown := sorted(set(names) - set(TRANSPORTS)):
        raise click.UsageError(f"--transports {','.join(unknown)}: choose from: {', '.join(TRANSPORTS)}")
    if messages < 1 or every_us < 0:
        raise click.UsageError("--messages must be at least 1, --every-us at least 0")
    rows: list[Any] = []
    request = {"transports": names, "messages": messages, "every_us": every_us}
    deadline_s = len(names) * (60.0 + messages * (every_us / 1e6 + 0.001))
    try:
        with emulation_lock(wait_s=60.0):
            spawn_inside("benchmarks.messages:inside", request, deadline_s=deadline_s, on_report=rows.append)
    except RefabricError as error:
        click.echo(f"messages: {error}", err=True)
        sys.exit(error.exit_code)
    if chart:
        draw_messages(rows, chart, [f"{messages} messages each", f"one every {every_us:g} us"])
    if as_json:
        click.echo(json.dumps({"benchmark": "messages", "rows": rows, "machine": machine()}))
        return
    for row in rows:
        click.echo("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
