"""Kamailio, redis and SIPp on emulated hosts: start, wait until ready, ask, read their counters."""

from __future__ import annotations

import csv
import itertools
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from common.errors import DeadlineError, RunError
from engines.emulation.hosts.processes import Process
from engines.emulation.kernel.namespaces import HostRef, call_in_netns
from engines.emulation.programs import RunningPrograms, scheduled_s
from engines.ims.calls import Calls

KAMAILIO, SIPP, REDIS = "/usr/sbin/kamailio", "/usr/bin/sipp", "/usr/bin/redis-server"
FILES = Path(__file__).parent / "files"
SIP_PORT, REDIS_PORT = 5060, 6379
READY_S = 20.0
ANSWER_S = 2.0
POLL_S = 0.02
TRUESIZE = 1280
"""Bytes of a receive buffer that a SIP message takes (the kernel's skb->truesize), as measured for frames of
256 to 724 bytes that the fabric sends."""
_PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_numbers = itertools.count()


@dataclass
class Kamailio:
    """One running instance. `host` is where it runs, `folder` holds its files."""

    name: str
    number: int
    host: HostRef
    address: str
    folder: Path
    process: Process
    pids: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    """Those of its processes that receive messages."""
    size_bytes: int = 0
    """Of its receive buffer."""
    active: bool = True
    quiet_since_s: float | None = None
    """When a draining instance was first seen without a transaction, and has had none since."""

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
        self.workers = tuple(int(each["PID"]) for each in found if "udp receiver" in each["DSC"])

    def cpu_s(self) -> float:
        """Return the CPU time of all its processes."""
        return sum(scheduled_s(pid)[0] for pid in self.pids)

    def waiting(self) -> tuple[int, int]:
        """Return the bytes in its receive buffer, and how many datagrams that has dropped. Raises RunError if
        it has ended."""
        try:
            lines = Path(f"/proc/{self.workers[0]}/net/udp").read_text().splitlines()[1:]
        except OSError as error:
            raise RunError(f"{self.name} has ended: {self.process.describe()}") from error
        fields = [line.split() for line in lines]
        port = f":{SIP_PORT:04X}"
        ours = [each for each in fields if each[1].endswith(port)]
        used = sum(int(each[4].split(":")[1], 16) for each in ours)
        return used, sum(int(each[12]) for each in ours)

    @property
    def fill(self) -> float:
        """How full its receive buffer is, as a share."""
        return self.waiting()[0] / self.size_bytes


def start_kamailio(
    programs: RunningPrograms,
    kind: str,
    number: int,
    host: HostRef,
    values: Mapping[str, str],
    env: Mapping[str, str],
) -> Kamailio:
    """Start an instance from the template of its kind; `values` replace @NAMES@ in it."""
    folder, name = Path(values["FOLDER"]), f"{kind}{number}"
    text = (FILES / f"{kind}.cfg").read_text()
    for key, value in {**values, "NAME": name}.items():
        text = text.replace(f"@{key}@", value)
    config, own = folder / f"{name}.cfg", folder / f"{name}.d"
    config.write_text(text)
    own.mkdir()
    argv = (KAMAILIO, "-DD", "-f", str(config), "-m", "64", "-M", "4", "-Y", str(own))
    process = Process(host, argv, folder / f"{name}.out", folder / f"{name}.err", {**_PATH, **env})
    programs.start(process)
    return Kamailio(name, number, host, values["ADDRESS"], folder, process)


def start_redis(programs: RunningPrograms, host: HostRef, folder: Path, data: str) -> None:
    """Start the HSS and fill it with `data`, lines of redis commands, from its own namespace."""
    argv = (
        REDIS, "--bind", "0.0.0.0", "--port", str(REDIS_PORT), "--protected-mode", "no", "--save", "",
        "--appendonly", "no", "--dir", str(folder),
    )  # fmt: skip
    process = Process(host, argv, folder / "hss.out", folder / "hss.err", _PATH)
    programs.start(process)
    end_s = time.monotonic() + READY_S
    while True:
        try:
            call_in_netns(host.pid, lambda: redis_commands("127.0.0.1", data))
            return
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


CALLEES_PORT = 5070
FIRST_PORT, FIRST_CONTROL = 5100, 8800
MAX_CALLS = "50000"
"""SIPp's own limit of open calls, which would throttle the load."""
_ENV = {"PATH": "/usr/bin:/bin", "TERM": "dumb"}
_COUNTS = ("TotalCallCreated", "SuccessfulCall(C)", "FailedCall(C)", "Retransmissions(C)")
_WRITTEN = "CurrentTime"


@dataclass
class LoadGenerator:
    """One SIPp that offers load; `control` is its port for commands."""

    kind: str
    process: Process
    statistics: Path
    control: int
    times: Path
    began_s: float
    """When it started (monotonic clock)."""
    offset: int = 0
    """Bytes of `times` that were read."""

    def counts(self) -> Calls:
        """Return the counts of its last report: calls, or registrations in their place."""
        try:
            with self.statistics.open(newline="") as file:
                rows = [row for row in csv.DictReader(file, delimiter=";") if row.get(_COUNTS[-1])]
        except FileNotFoundError:
            return Calls()
        if not rows:
            return Calls()
        written_s = float(rows[-1][_WRITTEN].split("\t")[-1])  # date, time of day, seconds since 1970
        begun, completed, failed, retransmitted = (int(rows[-1][name]) for name in _COUNTS)
        age_s = max(0.0, time.time() - written_s)
        return Calls(begun, completed, failed, retransmitted=retransmitted, age_s=age_s)

    def new_times(self) -> list[tuple[float, float]]:
        """Return when calls were set up (monotonic clock, s) and how long it took (ms), since the last call.

        SIPp's dates are in ms since it started.
        """
        try:
            with self.times.open("rb") as file:
                file.seek(self.offset)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self.offset += len(whole)
        fields = [line.split(";") for line in whole.decode().splitlines()]
        return [
            (self.began_s + float(f[0]) / 1000, float(f[1]))
            for f in fields
            if len(f) == 3 and f[2].strip() == "1"
        ]


@dataclass
class Users:
    """The users' host with its SIPp processes."""

    programs: RunningPrograms
    host: HostRef
    address: str
    folder: Path
    values: Mapping[str, str]
    generators: dict[tuple[str, str], LoadGenerator] = field(default_factory=dict)

    def start_callees(self) -> None:
        path = self._scenario("uas")
        argv = (
            SIPP, "-sf", str(path), "-i", self.address, "-p", str(CALLEES_PORT), "-nostdin",
            "-l", MAX_CALLS, "-default_behaviors", "none",
        )  # fmt: skip
        self._start("uas", argv)

    def set_rate(self, proxy: str, address: str, kind: str, per_s: float) -> None:
        """Set the rate that the generator of this kind ("uac" or "register") offers to a P-CSCF."""
        known = self.generators.get((proxy, kind))
        if known is None:
            if per_s > 0:
                self.generators[proxy, kind] = self._generator(address, kind, per_s)
            return
        command = f"cset rate {per_s:.3f}\n".encode()
        call_in_netns(self.host.pid, partial(_send, (self.address, known.control), command))

    def _generator(self, address: str, kind: str, per_s: float) -> LoadGenerator:
        number = len(self.generators)
        name = f"{kind}{number}"
        path, statistics = self._scenario(kind, name), self.folder / f"{name}.csv"
        control = FIRST_CONTROL + number
        argv = (
            SIPP, f"{address}:{SIP_PORT}", "-sf", str(path), "-i", self.address,
            "-p", str(FIRST_PORT + number), "-cp", str(control), "-inf", str(self.folder / "users.csv"),
            "-r", f"{per_s:.3f}", "-rp", "1000", "-l", MAX_CALLS, "-nostdin", "-default_behaviors", "none",
            "-trace_stat", "-fd", "200ms", "-stf", str(statistics), "-trace_rtt", "-rtt_freq", "1",
        )  # fmt: skip
        process = self._start(name, argv)
        times = self.folder / f"{name}_{process.pid}_rtt.csv"
        return LoadGenerator(kind, process, statistics, control, times, time.monotonic())

    def _scenario(self, kind: str, name: str = "") -> Path:
        text = (FILES / f"{kind}.xml").read_text()
        for key, value in self.values.items():
            text = text.replace(f"@{key}@", value)
        path = self.folder / f"{name or kind}.xml"
        path.write_text(text)
        return path

    def _start(self, name: str, argv: tuple[str, ...]) -> Process:
        process = Process(self.host, argv, self.folder / f"{name}.out", self.folder / f"{name}.err", _ENV)
        self.programs.start(process)
        return process


def _send(where: tuple[str, int], data: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.sendto(data, where)
