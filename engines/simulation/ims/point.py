"""A point about SIP calls in the simulator: its checks, its expected time, and its run."""

from __future__ import annotations

import dataclasses
import time

import topos
from common.errors import UsageError
from engines.engine import Observer
from engines.ims.checks import checked, most_instances
from engines.ims.run import measured
from engines.ims.summarise import summarise
from engines.provenance import origin
from engines.simulation.ims.twin import Twin
from fabric._core import COMPILER
from model.result import RunResult
from model.spec import RunSpec, sub_seed
from topos.topology import Topology
from workloads import sip

EVENTS_PER_CALL = 75
"""Approximate number of events of the core, of a microsecond or two each, per call and its registrations."""
EVENT_S = 1e-6
STARTING_S = 0.1
CALL_MB = 0.003
"""Memory of a call that has not been forgotten, its timers included."""
REMEMBERED_S = 37
PROGRAM_MB = 60.0


def check(spec: RunSpec) -> None:
    """Raise UsageError for what the simulated IMS does not have."""
    checked(spec, topos.build(spec.topology.kind, spec.topology.params))
    if spec.events:
        raise UsageError(f"--event: links of a simulated {sip.MATRIX} do not fail: choose --engine mininet")


def memory_mb(spec: RunSpec) -> float:
    settings = sip.settings(spec.workload.params)
    per_s = (settings.calls + settings.registrations) * settings.share
    return PROGRAM_MB + CALL_MB * per_s * min(REMEMBERED_S, spec.warmup_s + spec.seconds)


def expected_s(spec: RunSpec) -> float:
    settings = sip.settings(spec.workload.params)
    calls = (settings.calls + settings.registrations) * settings.share * (spec.warmup_s + spec.seconds)
    return STARTING_S + EVENTS_PER_CALL * EVENT_S * calls


def run(spec: RunSpec, observer: Observer) -> RunResult:
    """Run the point. The same spec gives the same result on every machine."""
    began = time.process_time()
    topology = topos.build(spec.topology.kind, spec.topology.params)
    settings = checked(spec, topology)
    seconds = round(spec.warmup_s + spec.seconds)
    observer.phase("measure", expected_s(spec))
    twin = Twin(settings, _hop_us(spec, topology), sub_seed(spec.seed, sip.MATRIX))
    found = measured(twin, settings, seconds, most_instances(topology))
    return dataclasses.replace(
        summarise(settings, round(spec.warmup_s), found),
        reproducible=True,
        provenance={**origin(), "compiler": COMPILER, "engine": "simulator", "steps": found.steps},
        cost={"simulation_cpu_s": time.process_time() - began, "events": float(twin.events)},
    )


def _hop_us(spec: RunSpec, topology: Topology) -> float:
    """Return the links' delay between the users and the first P-CSCF, which stands for all pairs of hosts."""
    names = topology.host_names
    users, _, pcscfs, _ = sip.roles_of(names, 1)
    links = len(topology.shortest_paths(topology.index(users), topology.index(pcscfs[0]))[0]) - 1
    return links * spec.link.delay_us + 2 * spec.link.host_delay_us
