"""What is read of a simulation at one instant of virtual time."""

from __future__ import annotations

from dataclasses import dataclass

from fabric.readings import FlowReadings, SimulatedCounters, SubflowReadings


@dataclass(frozen=True, eq=False)
class Reading:
    """`t_s` counts from the start of traffic; all counts since then."""

    t_s: float
    ports: SimulatedCounters
    flows: FlowReadings
    subflows: SubflowReadings
