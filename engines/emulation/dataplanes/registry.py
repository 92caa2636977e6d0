"""Data planes by name. A plane's module is imported only when it is used; listing names starts nothing.

To add a data plane, write a module with a MeasuredDataPlane and add an entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engines.emulation.dataplanes.dataplane import MeasuredDataPlane
from engines.emulation.sandbox.inside import Caller
from model.spec import RunSpec
from topos.topology import Topology


@dataclass(frozen=True)
class Plane:
    """One data plane.

    `check` raises UsageError for a spec that it cannot carry, and starts nothing. `check_machine` raises
    HostUnfitError for what this machine lacks. `make` is called in the run's private namespaces, with the
    folder for its logs and the caller, whose programs may run there.
    """

    about: str
    check: Callable[[RunSpec, Topology], None]
    check_machine: Callable[[RunSpec], None]
    make: Callable[[RunSpec, Topology, Path, Caller], MeasuredDataPlane]


def _fabric_carries(spec: RunSpec, topology: Topology) -> None:
    """Accept every spec."""
    del spec, topology


def _anywhere(spec: RunSpec) -> None:
    del spec


def _fabric(spec: RunSpec, topology: Topology, raw: Path, caller: Caller) -> MeasuredDataPlane:
    from engines.emulation.dataplanes import fabric_dataplane  # noqa: PLC0415

    del raw, caller
    return fabric_dataplane.make(spec, topology)


def _ovs_carries(spec: RunSpec, topology: Topology) -> None:
    from engines.emulation.dataplanes.ovs import checks  # noqa: PLC0415

    checks.check(spec, topology)


def _ovs_here(spec: RunSpec) -> None:
    from engines.emulation.dataplanes.ovs import checks  # noqa: PLC0415

    checks.check_machine(spec)


def _ovs(spec: RunSpec, topology: Topology, raw: Path, caller: Caller) -> MeasuredDataPlane:
    from engines.emulation.dataplanes.ovs import dataplane  # noqa: PLC0415

    return dataplane.make(spec, topology, raw, caller)


FABRIC = "fabric"
OVS = "ovs"
DATAPLANES: dict[str, Plane] = {
    FABRIC: Plane("refabric's own core in real time", _fabric_carries, _anywhere, _fabric),
    OVS: Plane("Open vSwitch under an OpenFlow controller", _ovs_carries, _ovs_here, _ovs),
}
