"""What a machine of a cluster says of itself before a sweep: asked in a process that ends with the answer, so
that nothing of it stays in a worker, no lock of the machine's either."""

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
from harness.execute.build import Build, build
from harness.execute.machines import unfit_here
from model.spec import RunSpec, TopologySpec

BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Survey:
    """What a worker's machine says of itself. `machine` is the same for workers on one kernel,
    `coupled_cc` is by engine, `rates` are the link rates (Mb/s) it is known to carry in real time."""

    build: Build
    machine: str
    coupled_cc: Mapping[str, tuple[str, str]]
    rates: tuple[tuple[TopologySpec, float], ...]


def survey(engine: Engine) -> Survey:
    """This machine's."""
    names = engine.name.split(",")
    coupled_cc = {name: only(engine, {name}).coupled_cc() for name in names}
    return Survey(build(), BOOT.read_text().strip(), coupled_cc, _rates(names))


def _rates(names: Collection[str]) -> tuple[tuple[TopologySpec, float], ...]:
    if not real_time(names):
        return ()
    from engines.emulation.calibration import calibrate  # noqa: PLC0415

    return tuple(calibrate.rates())


def check(engine: Engine, specs: Sequence[RunSpec]) -> dict[str, HostUnfitError]:
    """Engines that cannot run these points on this machine. Raises UsageError."""
    return unfit_here(engine, specs)


def answer() -> None:
    """The life of that process: a function and its arguments come in, what it returns or raises goes out."""
    function, args = pickle.load(sys.stdin.buffer)
    try:
        answered = function(*args)
    except RefabricError as error:
        answered = error
    sys.stdout.buffer.write(pickle.dumps(answered))
