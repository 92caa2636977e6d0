"""The process of the OpenFlow controller, in the run's namespaces, configured by a JSON file.

It prints one JSON line when it listens, and one when every switch is connected and programmed. Its stderr
goes to a file of the run. Its code is in controllers/openflow/.

The user's own controller is a command that runs inside, or a program outside, reached by a relay. It makes
all forwarding decisions. refabric waits until it listens and every switch has connected.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import DeadlineError, RunError
from common.lines import LineReader
from common.privileges import ROOT
from engines.emulation.dataplanes.dataplane import OVS
from engines.emulation.dataplanes.ovs import relay
from engines.emulation.dataplanes.ovs.daemons import disconnected, last_words
from engines.emulation.sandbox.inside import Caller
from model.spec import COMMAND, RunSpec, remote_port

LISTEN_S, END_S = 30.0, 5.0
LAST_LINES = 8


class ControllerProcess:
    """One controller process: `start`, `wait_ready`, `stop`; `check` detects its death.

    `argv` is the program; the path of the configuration file is appended. It runs as `caller`.
    """

    def __init__(
        self, argv: Sequence[str], config: Mapping[str, Any], folder: Path, log: Path, caller: Caller
    ) -> None:
        self._caller = caller
        self._argv = tuple(argv)
        self._config = dict(config)
        self._folder = folder
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._said: list[Mapping[str, Any]] = []
        self._lines: LineReader | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start it and wait until it listens. Raises RunError with its last output, DeadlineError."""
        path = self._folder / "controller.json"
        path.write_text(json.dumps(self._config))
        with self._log.open("wb") as log:
            self._process = self._caller.start(
                [*self._argv, str(path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env={"PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        assert self._process.stdout is not None
        self._lines = LineReader(self._process.stdout.fileno())
        self._await(1, LISTEN_S, "listen for switches")

    def wait_ready(self, deadline_s: float) -> Mapping[str, Any]:
        """Wait until all switches are connected and programmed; return its message. Raises as `start`."""
        self._await(2, deadline_s, "see every switch connected and programmed")
        return self._said[1]

    def check(self) -> None:
        """Raise RunError with its last output if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            raise RunError(f"the OpenFlow controller {self._ended()}")

    def stop(self) -> None:
        """Send SIGTERM, wait, then SIGKILL. No effect if it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)
        if process.stdout is not None:
            process.stdout.close()

    def _await(self, count: int, deadline_s: float, what: str) -> None:
        """Wait until it has printed `count` lines in total."""
        until = time.monotonic() + deadline_s
        while len(self._said) < count:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise DeadlineError(
                    f"the OpenFlow controller did not {what} within {deadline_s:g} s: {self._words()}"
                )
            self._hear(min(left_s, 0.2))

    def _hear(self, seconds: float) -> None:
        assert self._lines is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._lines.fd, selectors.EVENT_READ)
            if not selector.select(seconds):
                self.check()
                return
        lines = self._lines.read()
        if lines is None:
            assert self._process is not None
            self._process.wait(END_S)
            self.check()
        self._said += [_message(line) for line in lines or ()]

    def _ended(self) -> str:
        assert self._process is not None
        return f"exited with {self._process.poll()}: {self._words()}"

    def _words(self) -> str:
        return last_words(self._log.read_text(errors="replace"), LAST_LINES) or "it printed nothing"


def _message(line: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        text = line.decode(errors="replace")
        raise RunError(f"reading the OpenFlow controller's messages: '{text}' is not a JSON object")
    return message


PORT = 6653
"""Where switches look for their controller (IANA: openflow)."""
POLL_S = 0.1


class OwnController(ControllerProcess):
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
            left = disconnected()
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
