"""Kamailio and redis on emulated hosts: start, wait until ready, ask, read their counters."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import DeadlineError, RunError
from engines.emulation.hosts import processes
from engines.emulation.hosts.processes import Command, Process
from engines.emulation.ims.scheduling import prefer
from engines.emulation.ims.support import FILES, KAMAILIO, REDIS
from engines.emulation.kernel.netns import HostRef, call_in_netns

SIP_PORT, REDIS_PORT = 5060, 6379
READY_S = 20.0
ANSWER_S = 2.0
POLL_S = 0.02
TRUESIZE = 1280
"""Bytes of a receive buffer that a SIP message takes (the kernel's skb->truesize), as measured for frames of
256 to 724 bytes that the fabric sends."""
_PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_numbers = itertools.count()


@dataclass(frozen=True)
class Socket:
    """The receive buffer of a server's UDP socket: bytes in use, its size, and datagrams dropped."""

    used_bytes: int
    size_bytes: int
    dropped: int


@dataclass
class Kamailio:
    """One running instance. `host` is where it runs, `folder` holds its files."""

    name: str
    host: HostRef
    address: str
    folder: Path
    process: Process
    pids: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    """Those of its processes that receive messages."""

    def ask(self, method: str, *arguments: str) -> Any:
        """Return the result of a JSON-RPC call over the unix socket. Raises RunError without an answer."""
        request = {"jsonrpc": "2.0", "method": method, "params": list(arguments), "id": 1}
        own = self.folder / f"ask{next(_numbers)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
            asking.bind(str(own))
            asking.settimeout(ANSWER_S)
            try:
                asking.sendto(json.dumps(request).encode(), str(self.folder / f"{self.name}.rpc"))
                answer = json.loads(asking.recv(1 << 16))
            except (OSError, ValueError) as error:
                raise RunError(f"asking {self.name} for {method}: {error}") from error
            finally:
                own.unlink(missing_ok=True)
        if "result" not in answer:
            raise RunError(f"asking {self.name} for {method}: {answer.get('error')}")
        return answer["result"]

    def wait(self) -> None:
        """Wait until it answers, and learn its processes. Raises DeadlineError with its last lines."""
        end_s = time.monotonic() + READY_S
        while True:
            try:
                found = self.ask("core.psx")
                break
            except RunError as error:
                if self.process.poll() is not None or time.monotonic() > end_s:
                    raise DeadlineError(f"starting {self.name}: {self.process.describe()}") from error
                time.sleep(POLL_S)
        self.pids = tuple(int(each["PID"]) for each in found)
        prefer(self.pids)
        self.workers = tuple(int(each["PID"]) for each in found if "udp receiver" in each["DSC"])

    def cpu_s(self) -> float:
        """Return the CPU time of all its processes."""
        return sum(scheduled_s(pid)[0] for pid in self.pids)

    def socket(self, size_bytes: int) -> Socket:
        """Read its receive buffer. Raises RunError if it has ended."""
        try:
            lines = Path(f"/proc/{self.workers[0]}/net/udp").read_text().splitlines()[1:]
        except OSError as error:
            raise RunError(f"{self.name} has ended: {self.process.describe()}") from error
        fields = [line.split() for line in lines]
        port = f":{SIP_PORT:04X}"
        ours = [each for each in fields if each[1].endswith(port)]
        used = sum(int(each[4].split(":")[1], 16) for each in ours)
        return Socket(used, size_bytes, sum(int(each[12]) for each in ours))


def scheduled_s(pid: int) -> tuple[float, float]:
    """Return how long a process has run, and how long it was ready and waited for a CPU.

    Both are 0 once it has ended.
    """
    try:
        ran_ns, waited_ns, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0
    return int(ran_ns) / 1e9, int(waited_ns) / 1e9


def start_kamailio(
    name: str, kind: str, host: HostRef, values: Mapping[str, str], env: Mapping[str, str]
) -> Kamailio:
    """Start an instance from the template of its kind; `values` replace @NAMES@ in it."""
    folder = Path(values["FOLDER"])
    text = (FILES / f"{kind}.cfg").read_text()
    for key, value in {**values, "NAME": name}.items():
        text = text.replace(f"@{key}@", value)
    config, own = folder / f"{name}.cfg", folder / f"{name}.d"
    config.write_text(text)
    own.mkdir()
    argv = (KAMAILIO, "-DD", "-f", str(config), "-m", "64", "-M", "4", "-Y", str(own))
    command = Command(host, argv, folder / f"{name}.out", folder / f"{name}.err", {**_PATH, **env})
    (process,) = processes.start([command])
    return Kamailio(name, host, values["ADDRESS"], folder, process)


def start_redis(host: HostRef, folder: Path, data: str) -> Process:
    """Start the HSS and fill it with `data`, lines of redis commands, from its own namespace."""
    argv = (
        REDIS, "--bind", "0.0.0.0", "--port", str(REDIS_PORT), "--protected-mode", "no", "--save", "",
        "--appendonly", "no", "--dir", str(folder),
    )  # fmt: skip
    (process,) = processes.start([Command(host, argv, folder / "hss.out", folder / "hss.err", _PATH)])
    end_s = time.monotonic() + READY_S
    while True:
        try:
            call_in_netns(host.pid, lambda: redis_commands("127.0.0.1", data))
            prefer([process.pid])
            return process
        except OSError as error:
            if process.poll() is not None or time.monotonic() > end_s:
                raise DeadlineError(f"starting the HSS: {process.describe()}") from error
            time.sleep(POLL_S)


def redis_commands(address: str, lines: str) -> None:
    """Send commands and wait for all answers. Raises OSError."""
    with socket.create_connection((address, REDIS_PORT), ANSWER_S) as link:
        link.sendall(lines.encode())
        left = lines.count("\n")
        while left > 0:
            got = link.recv(1 << 16)
            if not got:
                raise OSError("the HSS closed its connection")
            left -= got.count(b"\n")


def look_up_s(address: str) -> float:
    """Return the time of one look-up, from the namespace that this runs in. Raises OSError."""
    with socket.create_connection((address, REDIS_PORT), ANSWER_S) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter()
        link.sendall(b"GET pw:u0\r\n")
        link.recv(1 << 12)
        return time.perf_counter() - began


def service_s(address: str, own: str, messages: int) -> float:
    """Return the mean time between the answers to a burst of OPTIONS, without those that came while the burst
    was sent. Raises OSError, also for a loss."""
    times_s = answered_s(address, own, messages)
    first = messages // 2 - 1
    return (times_s[-1] - times_s[first]) / (messages - 1 - first)


def answered_s(address: str, own: str, messages: int) -> list[float]:
    """Return when each answer to a burst of OPTIONS came (monotonic clock). Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.bind((own, 0))
        asking.settimeout(ANSWER_S)
        port = asking.getsockname()[1]
        for number in range(messages):
            asking.sendto(_options(address, own, port, number), (address, SIP_PORT))
        times_s = []
        for _ in range(messages):
            asking.recv(1 << 12)
            times_s.append(time.perf_counter())
        return times_s


def _options(address: str, own: str, port: int, number: int) -> bytes:
    return (
        f"OPTIONS sip:{address} SIP/2.0\r\nVia: SIP/2.0/UDP {own}:{port};branch=z9hG4bKprobe{number}\r\n"
        f"Max-Forwards: 70\r\nFrom: <sip:probe@ims>;tag=p{number}\r\nTo: <sip:probe@ims>\r\n"
        f"Call-ID: probe{number}@{own}\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"
    ).encode()
