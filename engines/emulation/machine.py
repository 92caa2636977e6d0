"""What this machine's kernel can do, found out by trying it: BPF programs and netem. Trying needs root."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import HostUnfitError
from engines.emulation.congestion import support as bpf
from engines.emulation.congestion.support import Support
from engines.emulation.kernel import shaping
from engines.emulation.ranks.support import unsupported
from engines.emulation.sandbox import client
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import reported_inside
from model.spec import RunSpec

LOOK_S = 60.0


@dataclass(frozen=True)
class Machine:
    """What was found. `ranks` says why hosts cannot stamp ranks; empty if they can."""

    congestion: Support
    ranks: str
    netem: bool

    @classmethod
    def tried(cls) -> Machine:
        """Try everything; needs root."""
        try:
            netem = shaping.has_netem()
        except HostUnfitError:  # no namespace can be made, which a run will say
            netem = False
        return cls(bpf.support(), unsupported(), netem)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Machine:
        """The inverse of dataclasses.asdict."""
        return cls(Support(**data["congestion"]), str(data["ranks"]), bool(data["netem"]))


def inside(inside: Inside) -> int:
    """Report what this machine can do, as root's part of `found`."""
    inside.report(dataclasses.asdict(Machine.tried()))
    return 0


@functools.cache
def found() -> Machine:
    """Return what this machine can do, found once per process.

    Without root and without a helper only files and the kernel's version are looked at. Raises RefabricError.
    """
    if os.geteuid() == 0:
        return Machine.tried()
    if not client.available():
        return Machine(bpf.support(), "", True)
    return Machine.from_json(reported_inside("look", None, LOOK_S))


def check_ranks(spec: RunSpec) -> None:
    """Raise HostUnfitError that says why this machine's hosts cannot run the point's programs."""
    if reason := found().ranks:
        raise HostUnfitError(
            f"--discipline {spec.link.discipline}, --cc {spec.transport.cc}: {reason}, or choose --engine "
            "simulator"
        )
