"""The engine `linux`: real TCP and MPTCP in virtual time, one guest per point, without root.

What runs in a guest is the emulation itself (engines/emulation/point.py), under a kernel whose clock moves on
only when everything in it waits (docs/virtual-linux.md). It is named, not imported, as the target of the
guest's program.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from common.errors import HostUnfitError, NoKernelError, UsageError
from engines import app
from engines.core_setup import check_agent
from engines.engine import Observer, OnePointPerCpu
from engines.kernel_hosts import MINTCP, check_spec, samples_bytes, slack_s, tables_bytes
from engines.linux import guest
from engines.linux.kernel.store import Kernel, current
from engines.provenance import free_memory_mb, origin
from engines.wire import ResultReader
from engines.workload import ByWorkload
from model.congestion import BASELINE, COUPLED_DEFAULT, kernel_name
from model.flows import PlannedFlow, planned_flows
from model.machine import demand
from model.network_plan import by_rank
from model.noise import noisy
from model.result import RunResult
from model.spec import ELASTIC, VIRTUAL, RunSpec, check_marks, sub_seed
from topos.topology import Topology

TARGET = "engines.emulation.point:run_point"
BUILD = "refabric kernel build"
NO_KERNEL = f"engine linux: no kernel is built yet; run: {BUILD}  # about 8 minutes on 2 cores, no root"
STARTING_S, STARTING_HOST_S = 3.0, 0.05
HOPS_PER_CPU_S = 180e3
"""Packet-hops per CPU second with native traffic on the reference machine (benchmarks/virtual_linux.py)."""
PATIENCE_S, PATIENCE = 120.0, 30.0
"""A guest's clock may stand still for this long, plus this many times the expected real time of a second."""


def check(spec: RunSpec) -> None:
    """Raise UsageError for a spec that guests cannot run, HostUnfitError for an unfit machine."""
    check_marks(spec)
    check_guest(spec)
    check_agent(spec)
    topology = spec.network()
    flows = planned_flows(spec, topology)
    check_spec(spec, topology, flows)
    guest.check_machine()
    check_objects(spec)
    check_memory(expected_mb(spec, topology, flows), free_memory_mb())
    available = kernel_or_advice().congestion_controls
    check_congestion_controls(sorted(app.congestion_controls(spec, flows)), available)
    app.check(spec, topology)


def memory_mb(spec: RunSpec) -> float:
    """Return the memory that the point's guest is expected to use."""
    topology = spec.network()
    return expected_mb(spec, topology, planned_flows(spec, topology))


def expected_s(spec: RunSpec) -> float:
    """Return an estimate from the point's hosts and packet-hops."""
    hosts = len(spec.network().hosts)
    return STARTING_S + STARTING_HOST_S * hosts + (spec.warmup_s + spec.seconds) * _wall_per_s(spec)


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """See `Engine.run`."""
    kernel = kernel_or_advice()
    reader = ResultReader(observer)
    began_s = time.monotonic()
    with guest.claimed_cpu() as cpu:
        cpu_s = guest.run(_asked(spec, kernel, raw), cpu, reader.take)
    result = reader.result("guest")
    virtual_s = spec.warmup_s + spec.seconds
    cost = {"wall_s": time.monotonic() - began_s, "guest_cpu_s": cpu_s}
    return dataclasses.replace(
        result,
        reproducible=True,
        provenance={**result.provenance, **_origin(kernel)},
        cost={**cost, **{f"{name}_per_virtual_s": spent / virtual_s for name, spent in cost.items()}},
    )


class LinuxEngine(ByWorkload, OnePointPerCpu):
    """An Engine with real Linux hosts in virtual time."""

    name = "linux"

    def coupled_cc(self) -> tuple[str, str]:
        """Return LIA, unless there is a kernel without it."""
        kernel = current()
        if kernel is None or kernel_name(COUPLED_DEFAULT) in kernel.congestion_controls:
            return COUPLED_DEFAULT, ""
        return BASELINE, f"the guests' kernel has no {COUPLED_DEFAULT}; run: {BUILD}"


def kernel_or_advice() -> Kernel:
    """Return the guests' kernel. Raises NoKernelError that says how to build it."""
    kernel = current()
    if kernel is None:
        raise NoKernelError(NO_KERNEL)
    return kernel


def _asked(spec: RunSpec, kernel: Kernel, raw: Path) -> guest.GuestSpec:
    topology = spec.network()
    expected = expected_mb(spec, topology, planned_flows(spec, topology))
    inner = dataclasses.replace(spec, clock=VIRTUAL)
    return guest.GuestSpec(
        kernel=kernel.path,
        memory_mb=guest_mb(expected),
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


OBJECTS = Path(__file__).parents[1] / "emulation/congestion/objects"


def check_guest(spec: RunSpec) -> None:
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


def check_congestion_controls(ccs: Iterable[str], available: Iterable[str]) -> None:
    """Raise HostUnfitError for a congestion control that the guests' kernel was built without."""
    have = tuple(available)
    for cc in ccs:
        if kernel_name(cc) not in have:
            raise HostUnfitError(
                f"congestion control {cc} is not in the guests' kernel (it has: {', '.join(have)}); run: "
                "refabric kernel build"
            )


KERNEL_MB, HOST_MB, FLOW_MB, SUBFLOW_MB = 550.0, 1.0, 2.0, 0.5
"""What a point uses: kernel, programs and their files; a host's namespace and NICs; a flow's buffers; a
subflow's. At k=8 with 8 subflows 1460 MB were used, and this gives 1446."""
BASE64 = 4 / 3
"""Tables leave the guest as text, which stays in its page cache. Figure 11 of cs244 at k=8 with 8 subflows
and 200 s of samples used 1768 MB, and this gives 1856."""
HEADROOM = 3.0
"""A guest may have this times what it is expected to use. Pages that it never touches cost nothing."""
STEP_MB = 256


def expected_mb(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> float:
    """Return the memory that the point's guest is expected to use, in MB."""
    subflows = sum(flow.subflows for flow in flows)
    network = KERNEL_MB + HOST_MB * len(topology.hosts) + FLOW_MB * len(flows) + SUBFLOW_MB * subflows
    ports = 2 * len(topology.links)
    sampled = samples_bytes(spec, ports, subflows) + BASE64 * tables_bytes(spec, ports, subflows)
    return network + sampled / 1e6 + app.memory_mb(spec, topology)


def guest_mb(expected: float) -> int:
    """Return the memory that the guest has, in MB: a multiple of STEP_MB."""
    return STEP_MB * math.ceil(HEADROOM * expected / STEP_MB)


def check_memory(expected: float, free_mb: float) -> None:
    """Raise UsageError if the machine has less memory than the point is expected to use."""
    if expected > free_mb:
        raise UsageError(
            f"the point's guest needs about {expected:,.0f} MB of memory, but only {free_mb:,.0f} MB are "
            "free: choose a smaller --k, fewer --subflows, fewer flows, or --engine simulator"
        )
