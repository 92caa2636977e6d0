"""Programs of a kind of workload on real hosts: their network, start and end, and the machine meanwhile.

    outside  spawned    a module of the kind starts the root helper's target `workload`
    inside   run_point  makes the network and calls `on_hosts` of that module; all programs end with it

The fabric runs by the strict clock: programs keep real time, so links must not stand still. Programs have
real-time priority, so others may keep the machine busy.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from common.errors import HostUnfitError, RunError
from engines import wire
from engines.emulation import outside
from engines.emulation.dataplanes.control import LinkEvents
from engines.emulation.dataplanes.fabric_dataplane import FabricDataPlane, default_tuning
from engines.emulation.hosts import processes
from engines.emulation.hosts.hosts import HostOptions
from engines.emulation.hosts.network import FabricNet
from engines.emulation.hosts.processes import Process
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.kernel.proc import CpuSampler
from engines.emulation.sandbox.inside import Inside
from engines.engine import Observer
from engines.workload import module_on
from fabric.plan import NetworkPlan
from model.reasons import SATURATED, STRETCHED, Fault, Reason
from model.result import RunResult
from model.spec import STRICT, RunSpec
from topos.topology import Topology

TARGET = "workload"
"""Of the root helper."""
STARTING_S, SLACK_S = 5.0, 60.0
PRIORITY = 1
"""Of SCHED_RR (sched(7)), below the fabric's core."""


def spawned(spec: RunSpec, observer: Observer, raw: Path, expected_s: float) -> RunResult:
    """Run the point inside a sandbox (run_point) and return its result. Raises RefabricError."""
    return outside.spawned(TARGET, spec, observer, raw, expected_s + SLACK_S)


class RunningPrograms:
    """The programs that run on hosts."""

    def __init__(self) -> None:
        self._running: list[Process] = []
        self._pids: set[int] = set()

    def start(self, program: Process) -> None:
        """Start a program. Raises CommandError, DiskFullError, HostUnfitError."""
        processes.start([program])
        self._running.append(program)
        self.prefer([program.pid])

    def prefer(self, pids: Iterable[int]) -> None:
        """Give processes, which may be children of programs, real-time priority: they sleep or wait most of
        the time. Raises HostUnfitError where the kernel refuses.
        """
        for pid in pids:
            self._pids.add(pid)
            try:
                os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(PRIORITY))
            except ProcessLookupError:
                continue  # it has ended; `check` reports that
            except OSError as error:
                raise HostUnfitError(
                    f"giving programs real-time priority: {error.strerror}; run as root"
                ) from error

    def check(self) -> None:
        """Raise RunError if a program has ended by itself."""
        for program in self._running:
            if program.poll() is not None:
                raise RunError(f"running programs: {program.describe()}")

    def end(self, program: Process) -> None:
        """End one program, before the others."""
        processes.end([program])
        self._running.remove(program)

    def end_all(self) -> None:
        processes.end(self._running)
        self._running.clear()

    def waited_s(self) -> dict[int, float]:
        """Return how long each process was ready and waited for a CPU, by its id."""
        return {pid: scheduled_s(pid)[1] for pid in self._pids}


def scheduled_s(pid: int) -> tuple[float, float]:
    """Return how long a process has run, and how long it was ready and waited for a CPU.

    Both are 0 once it has ended.
    """
    try:
        ran_ns, waited_ns, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0, 0.0
    return int(ran_ns) / 1e9, int(waited_ns) / 1e9


@dataclass
class HostNetwork:
    """The running network of a point: its `hosts` by name, the programs on them, and what the `machine` did
    while they were measured: `cpu_busy_pct`, `paused_pct` (of the time, the fabric's clock) and `waited_pct`
    (of the time, the process that waited most for a CPU)."""

    spec: RunSpec
    topology: Topology
    hosts: Mapping[str, HostRef]
    plane: FabricDataPlane
    report: Callable[[object], None]
    programs: RunningPrograms = field(default_factory=RunningPrograms)
    machine: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Change links as the spec's events say, and measure the machine, while the `with` block measures for
        the spec's seconds, warm-up included."""
        seconds = self.spec.warmup_s + self.spec.seconds
        self.report({"phase": "measure", "seconds": seconds})
        cpu, paused_s, waited_s = CpuSampler(), self.plane.reading().paused_s, self.programs.waited_s()
        with LinkEvents(self.plane.changes(self.spec)):
            yield
        waits_s = [now_s - waited_s.get(pid, 0.0) for pid, now_s in self.programs.waited_s().items()]
        self.machine = {
            "cpu_busy_pct": cpu.sample().machine.busy_pct,
            "waited_pct": 100 * max(waits_s, default=0.0) / seconds,
            "paused_pct": 100 * (self.plane.reading().paused_s - paused_s) / seconds,
        }


class OnHosts(Protocol):
    """The module of a kind that runs it on real hosts, seen from inside."""

    def plan_of(self, spec: RunSpec, topology: Topology) -> NetworkPlan:
        """Return the links of the network."""

    def on_hosts(self, network: HostNetwork) -> RunResult:
        """Start programs, measure them, return the result."""


def run_point(inside: Inside) -> int:
    """Run the RunSpec of the request and report its result."""
    spec = RunSpec.from_json(inside.request["spec"])
    topology, kind = spec.network(), cast(OnHosts, module_on("mininet", spec))
    inside.report({"phase": "network", "seconds": STARTING_S})
    plane = FabricDataPlane(
        topology, kind.plan_of(spec, topology), default_tuning(spec.link.rate_mbps, STRICT)
    )
    with FabricNet(topology, plane, HostOptions()) as net:
        network = HostNetwork(
            spec, topology, {host.name: host for host in net.host_refs()}, plane, inside.report
        )
        try:
            result = kind.on_hosts(network)
        except OSError as error:
            raise RunError(f"workload {spec.workload.matrix}: a program did not answer: {error}") from error
        finally:
            network.programs.end_all()
    result = dataclasses.replace(
        result,
        metrics={**result.metrics, **network.machine},
        provenance={**result.provenance, "scheduling": f"SCHED_RR {PRIORITY}"},
    ).doubted(contention(network.machine))
    for message in wire.messages(result, result.samples.items()):
        inside.report(message)
    return 0


BUSY_PCT = 95.0
WAITED_PCT = 2.0
"""How long a program that is ready may wait for a CPU, in percent of the run: the closest knees of an IMS are
4 % apart."""
PAUSED_PCT = 2.0


def contention(machine: Mapping[str, float]) -> list[Reason]:
    """Return why the machine (HostNetwork) makes measurements of programs doubtful."""
    found = []
    paused_pct, waited_pct = machine["paused_pct"], machine["waited_pct"]
    if paused_pct > PAUSED_PCT:
        words = f"CPU: the fabric's clock was paused for {paused_pct:.0f} % of the time"
        found.append(Reason(STRETCHED, words, Fault.UNKNOWN, (("paused_pct", paused_pct),)))
    if machine["cpu_busy_pct"] > BUSY_PCT and waited_pct > WAITED_PCT:
        words = f"CPU: no idle time, and a program waited for {waited_pct:.1f} % of the time"
        found.append(Reason(SATURATED, words, Fault.UNKNOWN, (("waited_pct", waited_pct),)))
    return found
