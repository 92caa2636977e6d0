"""Run a load through an IMS and control it: the same code for the simulated and the real one."""

from __future__ import annotations

import statistics
from typing import Protocol

from controllers.ims.policies import POLICIES
from controllers.ims.scaling import Scaler, Step
from controllers.ims.signals import FunctionSignals, InstanceSignals
from engines.ims.readings import ROLES, Instance, Measurement, Reading
from workloads.sip import CONSTANT, SipSettings

TICKS_PER_S = 10
HALF = 0.5
"""Share of a receive buffer from which on a function counts as overloaded."""


class System(Protocol):
    """An IMS that runs. Times are in seconds after the start of traffic."""

    def set_rates(self, calls_per_s: float, registrations_per_s: float) -> None: ...

    def wait(self, until_s: float) -> None: ...

    def fills(self) -> dict[str, float]:
        """Return how full the fullest receive buffer of each role is, as a share."""

    def read(self) -> Reading: ...

    def add(self, role: str) -> None:
        """Start an instance, or activate one that drains, and balance new dialogs over all."""

    def drain(self, role: str) -> None:
        """Give one instance no new dialogs; it ends with its last dialog."""


def measured(system: System, settings: SipSettings, seconds: int, most: int) -> Measurement:
    """Run the load for `seconds`, with at most `most` instances of a function; return what happened."""
    scalers = {role: Scaler(POLICIES[settings.policy], most, settings.react_s) for role in ROLES}
    found = Measurement(readings=[system.read()])
    for second in range(seconds):
        if second == 0 or settings.load != CONSTANT:
            system.set_rates(*settings.rates(second / seconds))
        for tick in range(1, TICKS_PER_S + 1):
            t_s = second + tick / TICKS_PER_S
            system.wait(t_s)
            for role, fill in system.fills().items():
                if fill >= HALF:
                    found.onset_s.setdefault(role, t_s)
        found.readings.append(system.read())
        _control(system, scalers, found)
    return found


def _control(system: System, scalers: dict[str, Scaler], found: Measurement) -> None:
    before, now = found.readings[-2:]
    for role, scaler in scalers.items():
        step = scaler.tick(signals(role, before, now))
        if step is Step.NONE:
            continue
        (system.add if step is Step.ADD else system.drain)(role)
        found.steps.append((now.t_s, role, step.value))


def signals(role: str, before: Reading, now: Reading) -> FunctionSignals:
    """Return what the controller sees of a function, from two readings."""
    earlier = {(each.role, each.number): each for each in before.instances}
    took_ms = [took for _, took in now.setups]
    return FunctionSignals(
        tuple(
            _instance(each, earlier.get((each.role, each.number)), now.t_s - before.t_s)
            for each in now.instances
            if each.role == role
        ),
        statistics.median(took_ms) if took_ms else None,
    )


def _instance(now: Instance, before: Instance | None, seconds: float) -> InstanceSignals:
    """Return the signals of one instance; a new one has counted from 0."""
    dropped, cpu_s, busy_s = (before.dropped, before.cpu_s, before.busy_s) if before else (0, 0.0, 0.0)
    return InstanceSignals(
        queue=now.fill,
        drops=now.dropped - dropped,
        cpu=(now.cpu_s - cpu_s) / seconds,
        busy=(now.busy_s - busy_s) / seconds / now.workers,
        active=now.active,
    )
