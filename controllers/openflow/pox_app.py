"""POX as a run's controller: `python -m controllers.openflow.pox_app CONFIG.json`.

`riplpox.pox_dir` finds POX. Output and exit codes follow osken_app's contract
(`controllers/openflow/__init__.py`), with two differences: POX listens on TCP only, and there is no control
socket.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any, TextIO

from common.errors import HostUnfitError, RefabricError, UsageError
from controllers.openflow.config import ControllerConfig, parse_address, read_config
from controllers.openflow.riplpox import RiplPox, boot_pox, listen_to

UNFIT = HostUnfitError.exit_code
LISTEN_S, POLL_S = 20.0, 0.02
CHANNEL = "REFABRIC_POX_EVENTS"
"""Environment variable with the descriptor of the real standard output, because POX writes to stdout."""


class Run:
    """One run of POX: reports when it listens and when all is programmed; ends POX on failure."""

    def __init__(self, config: ControllerConfig, core: Any, events: TextIO) -> None:
        self._config = config
        self._core = core
        self._events = events
        self._ready_s = 0.0
        self._programmed = False

    def programmed(self) -> None:
        self._programmed = True
        seconds = round(time.monotonic() - self._ready_s, 3)
        self._say(event="programmed", switches=len(self._config.build().switches), seconds=seconds)

    def fail(self, why: str) -> None:
        """Print the reason and end the process; POX itself would exit with code 0."""
        print(f"controller: {why}", file=sys.stderr, flush=True)
        os._exit(UNFIT)

    def watch(self) -> None:
        """Wait until POX listens, then until all switches are programmed; runs in its own thread."""
        address = parse_address(self._config.listen)
        assert not isinstance(address, Path)
        until = time.monotonic() + LISTEN_S
        while not _answers(address):
            if time.monotonic() > until:
                self.fail(f"POX did not listen on {self._config.listen} within {LISTEN_S:g} s")
            time.sleep(POLL_S)
        self._ready_s = time.monotonic()
        self._say(event="ready", listen=self._config.listen)
        time.sleep(self._config.connect_s)
        if not self._programmed:
            self.fail(f"not all switches are ready after {self._config.connect_s:g} s")

    def _say(self, **event: object) -> None:
        print(json.dumps(event), file=self._events, flush=True)


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, 1.0).close()
    except OSError:
        return False
    return True


def launch(config: str) -> bool | None:
    """Start the component; POX calls this."""
    from pox.core import core  # noqa: PLC0415 -- importable only inside POX

    given = read_config(Path(config))
    run = Run(given, core, os.fdopen(int(os.environ[CHANNEL]), "w"))
    try:
        component = RiplPox(given, run.programmed, run.fail)
    except UsageError as error:
        core.getLogger("riplpox").error("%s", error)
        return False
    listen_to(core, component)
    threading.Thread(target=run.watch, daemon=True).start()
    return None


def main(arguments: list[str]) -> int:
    """Run POX. Exit code: 0 after SIGTERM, 2 for an invalid configuration, 3 without POX or on failure."""
    if len(arguments) != 1:
        print("usage: POX_DIR=DIR python -m controllers.openflow.pox_app CONFIG.json", file=sys.stderr)
        return 2
    try:
        config = read_config(Path(arguments[0]))
        address = parse_address(config.listen)
        if isinstance(address, Path):
            raise UsageError(f"POX cannot listen on '{config.listen}': give tcp:ADDRESS:PORT")
        os.environ[CHANNEL] = str(os.dup(1))
        os.dup2(2, 1)
        host, port = address
        listener = ["openflow.of_01", f"--address={host}", f"--port={port}"]
        boot_pox(["controllers.openflow.pox_app", f"--config={arguments[0]}", *listener])
    except RefabricError as error:
        print(f"controller: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
