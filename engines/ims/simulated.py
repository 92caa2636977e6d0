"""A point about SIP calls in the simulator: its checks, its expected time, and its run."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from common.errors import UsageError
from engines.core_setup import PS_PER_MS, PS_PER_S
from engines.engine import Observer
from engines.ims.calls import (
    PCSCF,
    ROLES,
    Calls,
    ImsReading,
    Instance,
    checked,
    ims_result,
    measured,
    most_instances,
)
from engines.provenance import origin
from fabric._core import COMPILER, Ims
from fabric.plan import PS_PER_US
from fabric.readings import ImsCounts, ImsServer
from model.result import RunResult
from model.spec import RunSpec, sub_seed
from topos.topology import Topology
from workloads import sip
from workloads.sip import POISSON, SipSettings

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
    checked(spec, spec.network())
    if spec.events or spec.reroute_ms:
        raise UsageError(f"--event: links of a simulated {sip.MATRIX} do not fail: choose --engine mininet")


def memory_mb(spec: RunSpec) -> float:
    settings = sip.settings(spec.workload.params)
    per_s = (settings.calls + settings.registrations) * settings.share
    return PROGRAM_MB + CALL_MB * per_s * min(REMEMBERED_S, spec.warmup_s + spec.seconds)


def expected_s(spec: RunSpec) -> float:
    settings = sip.settings(spec.workload.params)
    calls = (settings.calls + settings.registrations) * settings.share * (spec.warmup_s + spec.seconds)
    return STARTING_S + EVENTS_PER_CALL * EVENT_S * calls


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run the point. The same spec gives the same result on every machine."""
    del raw
    began = time.process_time()
    topology = spec.network()
    settings = checked(spec, topology)
    seconds = round(spec.warmup_s + spec.seconds)
    observer.phase("measure", expected_s(spec))
    twin = Twin(settings, _hop_us(spec, topology), sub_seed(spec.seed, sip.MATRIX))
    found = measured(twin, settings, seconds, most_instances(topology))
    return dataclasses.replace(
        ims_result(settings, round(spec.warmup_s), found),
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


class Twin:
    """A System in virtual time. Instances that have drained are left out of readings."""

    def __init__(self, settings: SipSettings, hop_us: float, seed: int) -> None:
        self._settings = settings
        slower = PS_PER_US / settings.share
        self._core = Ims(
            pcscf_ps=round(settings.message_us * slower),
            scscf_ps=round(settings.scscf_us * slower),
            lookup_ps=round(settings.lookup_us * slower),
            workers=settings.workers,
            buffer=settings.buffer,
            hop_ps=round(hop_us * PS_PER_US),
            hold_ps=settings.hold_ms * PS_PER_MS,
            patience_ps=settings.patience_ms * PS_PER_MS,
            poisson=settings.arrivals == POISSON,
            seed=seed,
        )
        for role, count in zip(ROLES, (settings.pcscf, settings.scscf), strict=True):
            for _ in range(count):
                self._core.add(role)
        self._now_s = 0.0

    @property
    def events(self) -> int:
        return self._core.counts()["events"]

    def set_rates(self, calls_per_s: float, registrations_per_s: float) -> None:
        self._core.set_rates(calls_per_s, registrations_per_s)

    def wait(self, until_s: float) -> None:
        self._now_s = until_s
        self._core.advance(round(until_s * PS_PER_S))

    def fills(self) -> dict[str, float]:
        servers = self._core.servers()
        return {role: max(each["fill"] for each in servers if each["role"] == role) for role in ROLES}

    def read(self) -> ImsReading:
        when_ps, took_ps = self._core.take_setups()
        setups = zip((when_ps / PS_PER_S).tolist(), (took_ps / PS_PER_MS).tolist(), strict=True)
        counts: dict[str, int] = dict.fromkeys(ROLES, 0)
        instances = []
        for server in self._core.servers():
            counts[server["role"]] += 1
            if server["active"] or server["dialogs"] or not server["idle"]:
                instances.append(self._instance(server, counts[server["role"]]))
        return ImsReading(self._now_s, _calls(self._core.counts()), tuple(instances), tuple(setups))

    def add(self, role: str) -> None:
        draining = [i for i, each in self._of(role) if not each["active"]]
        if draining:
            self._core.activate(draining[-1])
        else:
            self._core.add(role)

    def drain(self, role: str) -> None:
        self._core.drain([i for i, each in self._of(role) if each["active"]][-1])

    def _of(self, role: str) -> list[tuple[int, ImsServer]]:
        return [(i, each) for i, each in enumerate(self._core.servers()) if each["role"] == role]

    def _instance(self, server: ImsServer, number: int) -> Instance:
        """Return the reading of a server; its CPU is busy with messages, not while it waits for a look-up."""
        settings = self._settings
        message_us = settings.message_us if server["role"] == PCSCF else settings.scscf_us
        return Instance(
            role=server["role"],
            number=number,
            waiting=server["fill"] * settings.buffer,
            fill=server["fill"],
            dropped=server["dropped"],
            cpu_s=server["served"] * message_us / settings.share / 1e6,
            busy_s=server["busy_ps"] / PS_PER_S,
            workers=1 if server["role"] == PCSCF else settings.workers,
            dialogs=server["dialogs"],
            active=server["active"],
        )


def _calls(counts: ImsCounts) -> Calls:
    return Calls(
        offered=counts["offered"],
        completed=counts["completed"],
        failed=counts["failed"],
        registrations=counts["registrations"],
        registered=counts["registered"],
        registrations_failed=counts["registrations_failed"],
        retransmitted=counts["retransmissions"],
    )
