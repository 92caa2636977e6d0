"""The engine `linux`: real TCP and MPTCP in virtual time, one guest per point, without root.

What runs in a guest is the emulation itself (engines/emulation/point.py), under a kernel whose clock moves on
only when everything in it waits (docs/virtual-linux.md). It is named, not imported, as the target of the
guest's program.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import topos
from common.errors import NoKernelError
from engines.core_setup.agent import check_agent
from engines.engine import Observer, OnePointPerCpu
from engines.kernel_hosts.checks import check_spec
from engines.kernel_hosts.deadlines import slack_s
from engines.kernel_hosts.outcome import Outcome
from engines.linux import checks, cpus, guest, memory
from engines.linux.kernel.store import Kernel, current
from engines.provenance import free_memory_mb, origin
from model.congestion import BASELINE, COUPLED_DEFAULT, kernel_name
from model.fields.limits import check_limits, check_marks
from model.flows import planned_flows
from model.machine.capacity import demand
from model.result import RunResult
from model.spec import VIRTUAL, RunSpec, sub_seed

TARGET = "engines.emulation.point:run_point"
BUILD = "refabric kernel build"
NO_KERNEL = f"engine linux: no kernel is built yet; run: {BUILD}  # about 8 minutes on 2 cores, no root"
STARTING_S, STARTING_HOST_S = 3.0, 0.05
HOPS_PER_CPU_S = 180e3
"""Packet-hops per CPU second with native traffic on the reference machine (benchmarks/virtual_linux.py)."""
PATIENCE_S, PATIENCE = 120.0, 30.0
"""A guest's clock may stand still for this long, plus this many times the expected real time of a second."""


class LinuxEngine(OnePointPerCpu):
    """An Engine with real Linux hosts in virtual time."""

    name = "linux"

    def check(self, spec: RunSpec) -> None:
        """Raise UsageError for a spec that guests cannot run, HostUnfitError for an unfit machine."""
        check_limits(spec)
        check_marks(spec)
        checks.check_spec(spec)
        check_agent(spec)
        topology = topos.build(spec.topology.kind, spec.topology.params)
        flows = planned_flows(spec, topology)
        check_spec(spec, topology, flows)
        checks.check_machine()
        checks.check_objects(spec)
        memory.check_memory(memory.expected_mb(spec, topology, flows), free_memory_mb())
        available = kernel_or_advice().congestion_controls
        checks.check_congestion_controls(sorted({flow.cc for flow in flows}), available)

    def memory_mb(self, spec: RunSpec) -> float:
        """Return the memory that the point's guest is expected to use."""
        topology = topos.build(spec.topology.kind, spec.topology.params)
        return memory.expected_mb(spec, topology, planned_flows(spec, topology))

    def coupled_cc(self) -> tuple[str, str]:
        """Return LIA, unless there is a kernel without it."""
        kernel = current()
        if kernel is None or kernel_name(COUPLED_DEFAULT) in kernel.congestion_controls:
            return COUPLED_DEFAULT, ""
        return BASELINE, f"the guests' kernel has no {COUPLED_DEFAULT}; run: {BUILD}"

    def expected_s(self, spec: RunSpec) -> float:
        """Return an estimate from the point's hosts and packet-hops."""
        hosts = len(topos.build(spec.topology.kind, spec.topology.params).hosts)
        return STARTING_S + STARTING_HOST_S * hosts + (spec.warmup_s + spec.seconds) * _wall_per_s(spec)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """See `Engine.run`."""
        kernel = kernel_or_advice()
        outcome = Outcome(observer)
        began_s = time.monotonic()
        with cpus.claimed() as cpu:
            cpu_s = guest.run(_asked(spec, kernel, raw), cpu, outcome.take)
        result = outcome.result("guest")
        virtual_s = spec.warmup_s + spec.seconds
        cost = {"wall_s": time.monotonic() - began_s, "guest_cpu_s": cpu_s}
        return dataclasses.replace(
            result,
            reproducible=True,
            provenance={**result.provenance, **_origin(kernel)},
            cost={**cost, **{f"{name}_per_virtual_s": spent / virtual_s for name, spent in cost.items()}},
        )


def kernel_or_advice() -> Kernel:
    """Return the guests' kernel. Raises NoKernelError that says how to build it."""
    kernel = current()
    if kernel is None:
        raise NoKernelError(NO_KERNEL)
    return kernel


def _asked(spec: RunSpec, kernel: Kernel, raw: Path) -> guest.Asked:
    topology = topos.build(spec.topology.kind, spec.topology.params)
    expected = memory.expected_mb(spec, topology, planned_flows(spec, topology))
    inner = dataclasses.replace(spec, clock=VIRTUAL)
    return guest.Asked(
        kernel=kernel.path,
        memory_mb=memory.guest_mb(expected),
        seed=sub_seed(spec.seed, "kernel"),
        target=TARGET,
        request={"spec": inner.to_json()},
        folder=raw.resolve(),
        patience_s=PATIENCE_S + PATIENCE * _wall_per_s(spec),
        limit_s=spec.warmup_s + spec.seconds + slack_s(spec),
    )


def _wall_per_s(spec: RunSpec) -> float:
    """Return how long a second of the point's time is expected to take."""
    return demand(spec).hops_per_s / HOPS_PER_CPU_S


def _origin(kernel: Kernel) -> dict[str, Any]:
    """Return the machine, the guests' kernel and the revision for the record."""
    named = f"Linux {kernel.version} (User-Mode Linux, virtual time)"
    return {**origin(), "engine": LinuxEngine.name, "kernel": named}
