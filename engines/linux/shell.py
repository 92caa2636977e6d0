"""`refabric shell --engine linux ft,4`: Mininet's CLI on a fabric in a guest, on the caller's terminal.

The guest's clock is virtual: a ping that takes a second ends at once. While the prompt waits for input, it
runs on as fast as one CPU allows. Commands can also be piped in.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

from common.errors import UsageError
from engines.core_setup import check_agent
from engines.kernel_hosts import check_spec
from engines.linux import engine, guest
from engines.linux.engine import kernel_or_advice
from engines.linux.guest import Terminal
from engines.provenance import free_memory_mb
from model.spec import VIRTUAL, RunSpec, check_marks

TARGET = "engines.emulation.hosts.shell:inside"
SEED = 1


def main(spec: RunSpec) -> int:
    """Open the shell on the network of `spec`, with its links and transport.

    Returns the exit status. Raises UsageError, HostUnfitError before anything is started; later what
    `guest.run` raises.
    """
    built = spec.network()
    check_marks(spec)
    engine.check_guest(spec)
    check_agent(spec)
    check_spec(spec, built, ())
    guest.check_machine()
    engine.check_objects(spec)
    expected = engine.expected_mb(spec, built, ())
    engine.check_memory(expected, free_memory_mb())
    kernel = kernel_or_advice()
    engine.check_congestion_controls([spec.transport.cc], kernel.congestion_controls)
    request = {"spec": dataclasses.replace(spec, clock=VIRTUAL).to_json(), "factory": ""}
    live = os.isatty(0)
    if live and not os.isatty(1):
        raise UsageError("refabric shell: stdout must be a terminal too; or pipe the commands in")
    with tempfile.TemporaryDirectory(prefix="refabric-shell-") as folder, guest.claimed_cpu() as cpu, _kept():
        asked = guest.GuestSpec(
            kernel=kernel.path,
            memory_mb=engine.guest_mb(expected),
            seed=SEED,
            target=TARGET,
            request=request,
            folder=Path(folder),
            patience_s=float("inf"),
            limit_s=float("inf"),
            terminal=_terminal(live),
            commands=b"" if live else sys.stdin.buffer.read(),
        )
        guest.run(asked, cpu, lambda _report: None)
    return 0


def _terminal(live: bool) -> Terminal:
    if not live:
        return Terminal(live=False)
    size = os.get_terminal_size()
    return Terminal(True, size.lines, size.columns)


@contextlib.contextmanager
def _kept() -> Iterator[None]:
    """Restore the terminal's settings, which the guest changes and cannot restore when it is killed."""
    if not os.isatty(0):
        yield
        return
    before = termios.tcgetattr(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
