"""The user's own controller: a command that runs inside, or a program outside, reached by a relay.

It makes all forwarding decisions. refabric waits until it listens and every switch has connected.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from common.errors import DeadlineError, RunError
from common.privileges import ROOT
from engines.emulation.dataplanes.ovs import relay
from engines.emulation.dataplanes.ovs.controller import LISTEN_S, Controller
from engines.emulation.dataplanes.ovs.daemons import SOCKET
from engines.emulation.dataplanes.ovs.database import disconnected
from engines.emulation.dataplanes.registry import OVS
from engines.emulation.sandbox.inside import Caller
from model.openflow import COMMAND, remote_port
from model.spec import RunSpec

PORT = 6653
"""Where switches look for their controller (IANA: openflow)."""
POLL_S = 0.1


class OwnController(Controller):
    """Starts the user's command, or the relay to the user's program, in the run's namespaces."""

    def __init__(self, chosen: str, folder: Path, log: Path, caller: Caller) -> None:
        self._chosen = chosen
        self._remote = remote_port(chosen) is not None
        self._lost: int | None = None
        """Connections that a controller outside had closed when all switches were connected."""
        super().__init__(self._program(), {}, folder, log, caller)

    def _program(self) -> list[str]:
        if self._remote:
            return [sys.executable, "-m", relay.__name__, str(PORT), os.environ[relay.CHANNEL]]
        return shlex.split(self._chosen.removeprefix(COMMAND))

    def start(self) -> None:
        """Start it and wait until it listens. Raises RunError with its last output, DeadlineError."""
        try:
            with self._log.open("wb") as log:
                self._process = self._caller.start(
                    self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    **({"cwd": ROOT} if self._remote else {}), start_new_session=True,
                    env={"PYTHONUNBUFFERED": "1"},
                    pass_fds=(int(os.environ[relay.CHANNEL]),) if self._remote else (),
                )  # fmt: skip
        except OSError as error:
            raise RunError(
                f"starting --controller {self._chosen}: {self._argv[0]}: {error.strerror}"
            ) from error

        def missing() -> str:
            return "" if _listens() else f"nothing listens at port {PORT}; give the program that port"

        self._wait(missing, LISTEN_S)

    def wait_ready(self, deadline_s: float) -> Mapping[str, Any]:
        """Wait until every switch is connected. Raises RunError, DeadlineError."""

        def missing() -> str:
            left = disconnected(SOCKET)
            return f"{left} switches are not connected" if left else ""

        self._wait(missing, deadline_s)
        self._lost = self._closed()
        return {"controller": self._chosen}

    def check(self) -> None:
        """Raise RunError if it has ended, or has closed a connection since all switches were connected."""
        super().check()
        if self._lost is not None and self._closed() > self._lost:
            raise RunError(f"--controller {self._chosen}: it ended, or closed its connection to a switch")

    def _closed(self) -> int:
        return self._log.read_text(errors="replace").count(relay.LOST) if self._remote else 0

    def _wait(self, missing: Callable[[], str], deadline_s: float) -> None:
        """Wait until nothing is missing. Raises RunError if the program ends, DeadlineError."""
        until = time.monotonic() + deadline_s
        while words := missing():
            self.check()
            if time.monotonic() > until:
                said = f"after {deadline_s:g} s {words}. It printed: {self._words()}"
                raise DeadlineError(f"--controller {self._chosen}: {said}")
            time.sleep(POLL_S)


def _listens() -> bool:
    try:
        socket.create_connection((relay.HOST, PORT), timeout=1.0).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def reachable(spec: RunSpec) -> Iterator[list[int]]:
    """Make a controller outside reachable from the namespaces; return descriptors that must be open there.

    Raises HostUnfitError if it does not listen.
    """
    port = remote_port(spec.openflow.controller) if spec.dataplane == OVS else None
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(relay.outside(port)) if port is not None else []
