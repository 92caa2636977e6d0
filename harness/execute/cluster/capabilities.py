"""Capabilities of a machine of a cluster, determined before a sweep.

A process of its own determines them, so that no state and no lock stays in the worker.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import HostUnfitError, RefabricError
from engines.dispatch import only
from engines.engine import Engine
from engines.registry import real_time
from harness.plan.capabilities import LocalCapabilities
from harness.results.build import Build, build
from model.spec import RunSpec, TopologySpec

BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a worker's machine.

    `machine` identifies the running kernel: workers of one machine have the same. `coupled_cc` is by engine.
    `rates` are the link rates (Mb/s) that the machine is known to carry in real time, by topology.
    """

    build: Build
    machine: str
    coupled_cc: Mapping[str, tuple[str, str]]
    rates: tuple[tuple[TopologySpec, float], ...]


def capabilities(engine: Engine) -> Capabilities:
    """Return the capabilities of this machine."""
    names = engine.name.split(",")
    coupled_cc = {name: only(engine, {name}).coupled_cc() for name in names}
    return Capabilities(build(), BOOT.read_text().strip(), coupled_cc, _rates(names))


def _rates(names: Collection[str]) -> tuple[tuple[TopologySpec, float], ...]:
    if not real_time(names):
        return ()
    from engines.emulation import calibrate  # noqa: PLC0415

    return tuple(calibrate.rates())


def check(engine: Engine, specs: Sequence[RunSpec]) -> dict[str, HostUnfitError]:
    """Return the engines that cannot run these points on this machine now. Raises UsageError."""
    return LocalCapabilities(engine).unfit(specs)


def main() -> None:
    """Read a function and its arguments from stdin (pickled), write its result or its error to stdout."""
    function, args = pickle.load(sys.stdin.buffer)
    try:
        result = function(*args)
    except RefabricError as error:
        result = error
    sys.stdout.buffer.write(pickle.dumps(result))
