"""The simulator engine: runs one RunSpec at a time, in virtual time, without root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from engines.engine import ByWorkload, OnePointPerCpu, Workload
from engines.ims import simulated as ims
from engines.simulation import flows
from model.congestion import COUPLED_DEFAULT
from model.spec import RunSpec
from workloads.matrices import FLOWS, IMS


class SimulatorEngine(ByWorkload, OnePointPerCpu):
    """An Engine with simulated hosts on the fabric core."""

    name = "simulator"
    workloads: ClassVar[Mapping[str, Workload]] = {FLOWS: flows, IMS: ims}

    def cpus(self, spec: RunSpec) -> int:
        """Return the number of threads that carry out the point."""
        return flows.cpus(spec)

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default: the simulator has all of them."""
        return COUPLED_DEFAULT, ""
