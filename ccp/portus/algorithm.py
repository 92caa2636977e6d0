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

from ccp.algorithm import Algorithm, Flow, Report
from ccp.language.instructions import Program
from ccp.portus.messages import MAX_BYTES, Install, Set, create, decoded, measure, ready
from ccp.portus.program import translated
from common.errors import RunError

READY_S, QUIET_S, STOP_S = 15.0, 0.3, 3.0
DATAPATH = 7
"""Our number as a datapath; any number works."""
BITS = 8


class PortusAlgorithm(Algorithm):
    """Hands reports to the agent and its answers to the datapath. Subclasses set `command`."""

    command: ClassVar[tuple[str, ...]] = ()
    """The agent's program, by its absolute path, and its arguments."""
    listens: ClassVar[str] = "/tmp/ccp/portus"
    """The unix socket on which the agent listens; portus's default."""
    real_hosts_only: ClassVar[bool] = True

    def __init__(self) -> None:
        self._flows: dict[int, Flow] = {}
        self._number = 0
        self.unsent = 0
        """Reports that the agent had no room for."""

    def start(self) -> Program:
        """Start the agent; return the program that it installs. Raises RunError without one after READY_S."""
        ours = Path(self.listens).with_name("refabric")
        ours.parent.mkdir(parents=True, exist_ok=True)
        ours.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(ours))
        self._socket.settimeout(QUIET_S)
        try:
            self._agent = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self.command], stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise RunError(f"starting {' '.join(self.command)}: {error.strerror}") from None
        return self._installed()

    def _installed(self) -> Program:
        deadline_s = time.monotonic() + READY_S
        while not Path(self.listens).exists():
            self._check()
            if time.monotonic() > deadline_s:
                raise RunError(f"{self.command[0]}: it does not listen on {self.listens}")
            time.sleep(0.05)
        self._socket.sendto(ready(DATAPATH), self.listens)
        installs: dict[int, Install] = {}
        while time.monotonic() < deadline_s:
            try:
                message = decoded(self._socket.recv(MAX_BYTES))
            except TimeoutError:
                self._check()
                if installs:
                    break
                continue
            if isinstance(message, Install):
                installs[message.number] = message
        if len(installs) != 1:
            raise RunError(
                f"{self.command[0]}: it installs {len(installs)} programs, and the datapath runs exactly one"
            )
        ((self._number, install),) = installs.items()
        self._socket.setblocking(False)
        return translated(install)

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
        self._send(measure(flow.number, self._number, list(report.values.values())))

    def on_close(self, flow: Flow) -> None:
        self._flows.pop(flow.number, None)
        self._send(measure(flow.number, self._number, ()))

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
        if message.program not in {None, self._number}:
            raise RunError(
                f"{self.command[0]}: it changes to program {message.program}, which it did not install"
            )
        rate = message.rate_bytes_per_s
        controls = {f"control{number}": value for number, value in message.controls.items()}
        rate_bps = None if rate is None else BITS * rate
        flow.set(cwnd_bytes=message.cwnd_bytes, rate_bps=rate_bps, **controls)

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
