"""SIPp on the users' host: callees, and for each P-CSCF one generator of calls and one of registrations."""

from __future__ import annotations

import csv
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from common.errors import RunError
from engines.emulation.hosts import processes
from engines.emulation.hosts.processes import Command, Process
from engines.emulation.ims.scheduling import prefer
from engines.emulation.ims.servers import SIP_PORT
from engines.emulation.ims.support import FILES, SIPP
from engines.emulation.kernel.netns import HostRef, call_in_netns

CALLEES_PORT = 5070
FIRST_PORT, FIRST_CONTROL = 5100, 8800
MAX_CALLS = "50000"
"""SIPp's own limit of open calls, which would throttle the load."""
_ENV = {"PATH": "/usr/bin:/bin", "TERM": "dumb"}
_COUNTS = ("TotalCallCreated", "SuccessfulCall(C)", "FailedCall(C)", "Retransmissions(C)")
_WRITTEN = "CurrentTime"


@dataclass(frozen=True)
class Counts:
    """Dialogs begun, completed and failed, and messages retransmitted, at the time of SIPp's last report.

    `age_s` says how long ago that was.
    """

    begun: int = 0
    completed: int = 0
    failed: int = 0
    retransmitted: int = 0
    age_s: float = 0.0


@dataclass
class Generator:
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

    def counts(self) -> Counts:
        """Return the counts of its last report."""
        try:
            with self.statistics.open(newline="") as file:
                rows = [row for row in csv.DictReader(file, delimiter=";") if row.get(_COUNTS[-1])]
        except FileNotFoundError:
            return Counts()
        if not rows:
            return Counts()
        written_s = float(rows[-1][_WRITTEN].split("\t")[-1])  # date, time of day, seconds since 1970
        begun, completed, failed, retransmitted = (int(rows[-1][name]) for name in _COUNTS)
        return Counts(begun, completed, failed, retransmitted, max(0.0, time.time() - written_s))

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

    host: HostRef
    address: str
    folder: Path
    values: Mapping[str, str]
    generators: dict[tuple[str, str], Generator] = field(default_factory=dict)
    callees: Process | None = None

    def start_callees(self) -> None:
        path = self._scenario("uas")
        argv = (
            SIPP, "-sf", str(path), "-i", self.address, "-p", str(CALLEES_PORT), "-nostdin",
            "-l", MAX_CALLS, "-default_behaviors", "none",
        )  # fmt: skip
        self.callees = self._start("uas", argv)

    def set_rate(self, proxy: str, address: str, kind: str, per_s: float) -> None:
        """Set the rate that the generator of this kind ("uac" or "register") offers to a P-CSCF."""
        known = self.generators.get((proxy, kind))
        if known is None:
            if per_s > 0:
                self.generators[proxy, kind] = self._generator(address, kind, per_s)
            return
        command = f"cset rate {per_s:.3f}\n".encode()
        call_in_netns(self.host.pid, partial(_send, (self.address, known.control), command))

    def check(self) -> None:
        """Raise RunError if a program has ended."""
        for each in self.generators.values():
            if each.process.poll() is not None:
                raise RunError(f"generating load: {each.process.describe()}")
        if self.callees is not None and self.callees.poll() is not None:
            raise RunError(f"answering calls: {self.callees.describe()}")

    def all(self) -> list[Process]:
        return [
            *(each.process for each in self.generators.values()),
            *([self.callees] if self.callees else []),
        ]

    def _generator(self, address: str, kind: str, per_s: float) -> Generator:
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
        return Generator(kind, process, statistics, control, times, time.monotonic())

    def _scenario(self, kind: str, name: str = "") -> Path:
        text = (FILES / f"{kind}.xml").read_text()
        for key, value in self.values.items():
            text = text.replace(f"@{key}@", value)
        path = self.folder / f"{name or kind}.xml"
        path.write_text(text)
        return path

    def _start(self, name: str, argv: tuple[str, ...]) -> Process:
        command = Command(self.host, argv, self.folder / f"{name}.out", self.folder / f"{name}.err", _ENV)
        (process,) = processes.start([command])
        prefer([process.pid])
        return process


def _send(where: tuple[str, int], data: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.sendto(data, where)
