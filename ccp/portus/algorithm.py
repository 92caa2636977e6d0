"""An unmodified agent of portus as an algorithm: its own process, which exchanges messages with this one.

from ccp.portus import PortusAlgorithm

class Mine(PortusAlgorithm):
    command = ("/home/me/agent/target/release/agent", "--ipc", "unix")

The agent answers when it can, so it controls real hosts only.
"""

from __future__ import annotations

import ipaddress
import socket
import subprocess
import time
from pathlib import Path
from typing import ClassVar

from ccp.algorithm import Algorithm, Flow
from ccp.language.programs import EMPTY, MAX_PROGRAMS, Programs
from ccp.portus.messages import MAX_BYTES, Install, Set, create, decoded, measure, ready
from ccp.portus.program import translated
from ccp.reports import Report
from common.errors import RunError

READY_S, QUIET_S, STOP_S = 15.0, 0.3, 3.0
DATAPATH = 7
"""Our number as a datapath; any number works."""
BITS = 8
NONE = "none"
"""The empty program with which flows begin."""


class PortusAlgorithm(Algorithm):
    """Hands reports to the agent and its answers to the datapath. Subclasses set `command`."""

    command: ClassVar[tuple[str, ...]] = ()
    """The agent's program, by its absolute path, and its arguments."""
    listens: ClassVar[str] = "/tmp/ccp/portus"
    """The unix socket on which the agent listens; portus's default."""
    real_hosts_only: ClassVar[bool] = True

    def __init__(self) -> None:
        self._flows: dict[int, Flow] = {}
        self._installed: dict[int, Install] = {}
        self.unsent = 0
        """Reports that the agent had no room for."""

    def start(self) -> Programs:
        """Start the agent; return the programs that it installs, after an empty one: a flow runs none before
        the agent says which, as in libccp. Raises RunError without any after READY_S.
        """
        ours = Path(self.listens).with_name("refabric")
        ours.parent.mkdir(parents=True, exist_ok=True)
        ours.unlink(missing_ok=True)
        _lead_back(ours.parent)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(ours))
        self._socket.settimeout(QUIET_S)
        try:
            self._agent = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self.command], stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise RunError(f"starting {' '.join(self.command)}: {error.strerror}") from None
        self._wait_for_agent()
        self._socket.setblocking(False)
        names = tuple(_name(number) for number in self._installed)
        return Programs((NONE, *names), (EMPTY, *map(translated, self._installed.values())))

    def _wait_for_agent(self) -> None:
        """Take what the agent installs, until nothing more has come for QUIET_S."""
        deadline_s = time.monotonic() + READY_S
        while not Path(self.listens).exists():
            self._check()
            if time.monotonic() > deadline_s:
                raise RunError(f"{self.command[0]}: it does not listen on {self.listens}")
            time.sleep(0.05)
        self._socket.sendto(ready(DATAPATH), self.listens)
        while time.monotonic() < deadline_s:
            try:
                message = decoded(self._socket.recv(MAX_BYTES))
            except TimeoutError:
                self._check()
                if self._installed:
                    break
                continue
            if isinstance(message, Install):
                self._installed[message.number] = message
        if not 1 <= len(self._installed) < MAX_PROGRAMS:
            raise RunError(
                f"{self.command[0]}: it installs {len(self._installed)} programs in {READY_S:g} s; "
                f"the datapath takes 1 to {MAX_PROGRAMS - 1}"
            )

    def stop(self) -> None:
        """End the agent."""
        self._agent.terminate()
        try:
            self._agent.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()
        self._socket.close()

    def on_create(self, flow: Flow) -> None:
        self._flows[flow.number] = flow
        ends = [int(ipaddress.IPv4Address(end)) for end in (flow.source, flow.destination)]
        self._send(create(flow.number, flow.cwnd_bytes, flow.mss, ends[0], ends[1]))

    def on_report(self, flow: Flow, report: Report) -> None:
        if report.program != NONE:
            self._send(measure(flow.number, int(report.program), list(report.values.values())))

    def on_close(self, flow: Flow) -> None:
        self._flows.pop(flow.number, None)
        self._send(measure(flow.number, 0, ()))

    def poll(self) -> None:
        """Take the agent's answers. Raises RunError if it has ended."""
        self._check()
        while True:
            try:
                message = decoded(self._socket.recv(MAX_BYTES))
            except BlockingIOError:
                return
            if isinstance(message, Set) and message.flow in self._flows:
                self._obey(self._flows[message.flow], message)

    def _obey(self, flow: Flow, message: Set) -> None:
        window, rate = message.cwnd_bytes or None, message.rate_bytes_per_s or None  # libccp: 0 sets nothing
        rate_bps = None if rate is None else BITS * rate
        controls = {f"control{number}": value for number, value in message.controls.items()}
        if message.program is None:
            flow.set(cwnd_bytes=window, rate_bps=rate_bps, **controls)
        elif message.program in self._installed:
            flow.set_program(_name(message.program), cwnd_bytes=window, rate_bps=rate_bps, **controls)
        else:
            raise RunError(
                f"{Path(self.command[0]).name}: the agent changes to program {message.program}, which it did "
                f"not install; it installed: {', '.join(map(_name, self._installed))}"
            )

    def _send(self, message: bytes) -> None:
        try:
            self._socket.sendto(message, self.listens)
        except BlockingIOError:
            self.unsent += 1

    def _check(self) -> None:
        """Raise RunError if the agent has ended."""
        code = self._agent.poll()
        if code is not None:
            how = f"by signal {-code}" if code < 0 else f"with code {code}"
            raise RunError(f"{Path(self.command[0]).name}: the agent ended {how}")


def _lead_back(folder: Path) -> None:
    """Let FOLDER/FOLDER be FOLDER: portus up to 0.6 puts its folder before the address that it answers to."""
    again = folder / str(folder.absolute()).lstrip("/")
    again.parent.mkdir(parents=True, exist_ok=True)
    again.unlink(missing_ok=True)
    again.symlink_to(folder.absolute())


def _name(number: int) -> str:
    """Return our name of the program that the agent knows by this number."""
    return str(number)
