"""Checks of a spec for guests, before anything is started."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path

from common.errors import HostUnfitError, UsageError
from engines.kernel_hosts.kernel_stack import MINTCP
from model.congestion import kernel_name
from model.network_plan import by_rank
from model.noise import noisy
from model.spec import ELASTIC, RunSpec

ARCHITECTURE = "x86_64"
OBJECTS = Path(__file__).parents[1] / "emulation/congestion/objects"


def check_spec(spec: RunSpec) -> None:
    """Raise UsageError for what has no meaning in a guest: it has one CPU, which is never late."""
    if spec.dataplane != RunSpec.dataplane:
        raise UsageError(
            f"--dataplane {spec.dataplane}: guests have the data plane {RunSpec.dataplane} alone; choose "
            "--engine mininet"
        )
    if noisy(spec):
        raise UsageError("--stalls: in virtual time no CPU stalls; choose --engine mininet")
    if spec.clock != ELASTIC:
        raise UsageError(f"--clock {spec.clock}: in virtual time there is one clock; leave it out")


def check_objects(spec: RunSpec, objects: Path = OBJECTS) -> None:
    """Raise HostUnfitError if the programs at guests' interfaces, for ranks and minTCP, are not compiled."""
    needed = [("stamp", by_rank(spec.link.discipline)), ("hide_sacks", spec.transport.cc == MINTCP)]
    missing = [name for name, is_needed in needed if is_needed and not (objects / f"{name}.o").is_file()]
    if missing:
        raise HostUnfitError(
            f"--discipline {spec.link.discipline}, --cc {spec.transport.cc}: the BPF program {missing[0]} is "
            "not compiled; run: setup/install.sh (it needs clang, libbpf-dev), or choose --engine simulator"
        )


def check_machine(machine: str | None = None) -> None:
    """Raise HostUnfitError for a machine of another architecture."""
    found = platform.machine() if machine is None else machine
    if found != ARCHITECTURE:
        raise HostUnfitError(
            f"engine linux: User-Mode Linux runs on {ARCHITECTURE}, this machine is {found}; choose --engine "
            "simulator"
        )


def check_congestion_controls(ccs: Iterable[str], available: Iterable[str]) -> None:
    """Raise HostUnfitError for a congestion control that the guests' kernel was built without."""
    have = tuple(available)
    for cc in ccs:
        if kernel_name(cc) not in have:
            raise HostUnfitError(
                f"congestion control {cc} is not in the guests' kernel (it has: {', '.join(have)}); run: "
                "refabric kernel build"
            )
