"""A kind of workload: the user's own programs, with flows beside them (workloads/app.py).

Real hosts run it as they run flows (engines/emulation/app.py has the programs, inside). Here is
what engines ask of a spec, what became of programs, and the verdict.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.errors import HostUnfitError, UsageError
from common.processes import SYSTEM_PATH
from engines import flows
from engines.workload import WorkloadKind
from model.congestion import in_force
from model.flows import PlannedFlow
from model.network_plan import by_rank
from model.reasons import PROGRAMS, SATURATED, Reason
from model.result import RunResult, Table
from model.spec import RunSpec, sub_seed
from topos.topology import Topology
from workloads import app
from workloads.app import App, Program

PROGRAM_MB = 30.0
"""What a program is expected to use, its folder included."""
_WHO = {"program": "its group", "number": "its number in the group", "host": "its host"}
TABLES: Mapping[str, Mapping[str, str]] = {
    "programs": {
        **_WHO,
        "started_s": "when it started, counted from the opening of the window",
        "ended_s": "when it ended by itself",
        "exit_code": "its exit code, then; negative: the signal that ended it",
        "cpu_s": "CPU time of it and the processes that it waited for",
        "waited_s": "how long it was ready and waited for a CPU",
        "max_rss_mb": "the most memory of it, in MB",
    },
    "values": {
        "t_s": "when the line was read, counted from the opening of the window",
        **_WHO,
        "name": "name of the number",
        "value": "the number",
    },
    "connections": {
        "program": "the group that listens",
        "protocol": "tcp or mptcp, as the kernel says",
        "cc": "congestion control in force at the client",
        "connections": "number of connections that were seen; the kernel is read once a second",
        "subflows": "their mean number of subflows",
    },
}
WAITED_PCT = 5.0
"""A program that waited longer for a CPU, in percent of its time, was slowed by the machine."""


def app_of(spec: RunSpec) -> App | None:
    """Return the app of a point; None if its hosts run flows alone. Raises UsageError."""
    workload = spec.workload
    return app.parsed(str(workload.params.get("programs", ""))) if workload.matrix == app.NAME else None


def programs_of(spec: RunSpec, topology: Topology) -> tuple[Program, ...]:
    """Return the programs of a point, none if its hosts run flows alone. Raises UsageError."""
    found = app_of(spec)
    return app.placed(found, topology.host_names, sub_seed(spec.seed, "workload")) if found else ()


def setting_of(spec: RunSpec, topology: Topology) -> app.Setting:
    """Return what the commands of the point's programs may name."""
    hosts = [(topology.nodes[host].name, topology.nics_of(host)[0].ip) for host in topology.hosts]
    return app.Setting(
        programs_of(spec, topology),
        dict(hosts),
        sub_seed(spec.seed, "programs"),
        spec.link.rate_mbps,
        sys.executable,
    )


def congestion_controls(spec: RunSpec, planned: Sequence[PlannedFlow]) -> set[str]:
    """Return those of the point's flows and of its programs' connections."""
    own = {in_force(spec.transport.cc, spec.transport.subflows)} if app_of(spec) else set()
    return {flow.cc for flow in planned} | own


def memory_mb(spec: RunSpec, topology: Topology) -> float:
    """Return what the programs are expected to use."""
    return PROGRAM_MB * len(programs_of(spec, topology))


def check(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for programs that cannot run, HostUnfitError for those that are not installed."""
    found = app_of(spec)
    if found is None:
        return
    if by_rank(spec.link.discipline):
        raise UsageError(
            f"--discipline {spec.link.discipline}: programs send no ranks; choose another discipline"
        )
    setting = setting_of(spec, topology)
    for program in setting.programs:
        group, what = program.group, f"workload {app.NAME}, programs.{program.group.name}"
        if program.number:
            continue
        if group.start_s < -spec.warmup_s:
            raise UsageError(
                f"{what}: start_s = {group.start_s:g} is before the warm-up of {spec.warmup_s:g} s"
            )
        _check_installed(what, setting.filled(program, group.run[0]), group.package, found)
    late = max(program.start_s for program in setting.programs)
    if late >= spec.seconds:
        raise UsageError(
            f"workload {app.NAME}: a program starts {late:.3g} s after the opening of the window, which ends "
            f"after {spec.seconds:g} s: give more --seconds"
        )


def _check_installed(what: str, name: str, package: str, found: App) -> None:
    own = name.removeprefix("./")
    if own in found.files and ("/" in name or shutil.which(name, path=SYSTEM_PATH) is None):
        if "/" not in name:
            raise UsageError(f"{what}: {name} is one of its files: write ./{name}")
        return
    there = os.access(name, os.X_OK) if name.startswith("/") else "/" not in name
    if not there or shutil.which(name, path=SYSTEM_PATH) is None:
        hint = f"run: sudo apt-get install {package}" if package else "install it, or name it in files"
        raise HostUnfitError(f"{what}: the program {name} is missing; {hint}")


def value_metrics(values: Table, seconds: float) -> dict[str, float]:
    """Return count, mean, percentiles, maximum and rate of what each group measured in the window."""
    found: dict[str, float] = {}
    inside = values["t_s"] >= 0 if len(values) else np.zeros(0, bool)
    keys = {(str(group), str(name)) for group, name in zip(values["program"], values["name"], strict=True)}
    for group, name in sorted(keys):
        own = values["value"][inside & (values["program"] == group) & (values["name"] == name)]
        if not len(own):
            continue
        p50, p99 = np.percentile(own, (50, 99))
        of = {"count": len(own), "mean": own.mean(), "p50": p50, "p99": p99, "max": own.max()}
        of["per_s"] = len(own) / seconds
        found |= {f"{group}_{name}_{what}": float(value) for what, value in of.items()}
    return found


def verdict(result: RunResult, spec: RunSpec) -> RunResult:
    """Return `result` as that of its flows, if there are any; failed if a group that measures has no value,
    suspect if programs that end the run had not ended, or if one lacked CPU time."""
    found = app_of(spec)
    assert found is not None
    if result.flows:
        result = flows.verdict(result, spec)
    for group in found.programs:
        if group.measure and not any(name.startswith(f"{group.name}_") for name in result.metrics):
            lines = "JSON object" if group.measure == app.JSON else f"match of {group.measure}"
            return result.without_data(f"programs.{group.name} measured nothing: no {lines} on stdout")
    numbers: Mapping[str, Any] = result.metrics
    doubts = []
    if unfinished := numbers.get("programs_unfinished", 0):
        words = f"{unfinished:.0f} programs that end the run had not ended after {spec.seconds:g} s"
        doubts.append(Reason(PROGRAMS, words, numbers=(("programs", unfinished),)))
    if (waited := numbers.get("programs_waited_pct", 0.0)) > WAITED_PCT:
        words = f"CPU: a program was ready and waited for {waited:.0f} % of its time"
        doubts.append(Reason(SATURATED, words, numbers=(("waited_pct", waited),)))
    return result.doubted(doubts)


KIND = WorkloadKind(
    engines={"mininet": "engines.emulation.engine", "linux": "engines.linux.engine"},
    verdict=verdict,
    tables=TABLES,
    drawn=True,
)
