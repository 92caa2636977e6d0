"""The emulation engine: runs one RunSpec at a time, in private namespaces."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from engines.emulation import flows, machine
from engines.emulation.sandbox.client import emulation_lock
from engines.engine import ByWorkload, Observer, Workload
from engines.ims import real as ims
from engines.provenance import origin, output
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.result import RunResult
from model.spec import RunSpec
from workloads.matrices import FLOWS, IMS

WAIT_S = 3600.0
"""How long a run waits for another emulation of this machine to end."""


class MininetEngine(ByWorkload):
    """An Engine with real Linux hosts and one of DATAPLANES between them."""

    name = "mininet"
    parallel = 1
    workloads: ClassVar[Mapping[str, Workload]] = {FLOWS: flows, IMS: ims}

    def __init__(self, wait_s: float = WAIT_S) -> None:
        """Wait at most `wait_s` for another emulation of this machine to end."""
        self._wait_s = wait_s
        self._lock = ExitStack()
        self._locked = False

    def close(self) -> None:
        """Release the machine's emulation lock. The end of the process releases it too."""
        self._lock.close()
        self._locked = False

    def cpus(self, spec: RunSpec) -> int:
        """See `Engine.cpus`: points run one at a time anyway."""
        del spec
        return 1

    def coupled_cc(self) -> tuple[str, str]:
        """See `Engine.coupled_cc`."""
        found = machine.found().congestion
        return (COUPLED_DEFAULT, "") if found.ok else (BASELINE, found.text)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """See `Engine.run`."""
        self.take_machine()
        result = super().run(spec, observer, raw)
        return dataclasses.replace(result, provenance={**origin(), "tools": _tools(), **result.provenance})

    def take_machine(self) -> None:
        """See `NeedsMachine`: two emulations would compete for the CPUs, so the later one waits."""
        if not self._locked:
            self._lock.enter_context(emulation_lock(self._wait_s, _say_waiting))
            self._locked = True


def _say_waiting(owner: str) -> None:
    print(f"refabric: waiting for another emulation to end: {owner}", file=sys.stderr, flush=True)


_VERSIONS = {
    "iperf3": ["iperf3", "--version"],
    "mininet": ["mn", "--version"],
    "iproute2": ["ip", "-V"],
}


@functools.cache
def _tools() -> dict[str, str]:
    """Return the first line of each tool's version; `missing` if it is not installed."""
    return {name: _version(argv) for name, argv in _VERSIONS.items()}


def _version(argv: list[str]) -> str:
    if shutil.which(argv[0]) is None:
        return "missing"
    return (output(argv).splitlines() or ["unknown"])[0]
