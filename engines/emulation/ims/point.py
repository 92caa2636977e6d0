"""A point about SIP calls between real programs, inside private namespaces.

The fabric runs by the strict clock: servers and users keep real time, so links must not stand still.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import topos
from common.errors import RunError
from engines import wire
from engines.emulation.dataplanes.fabric_dataplane import FabricDataPlane, default_tuning
from engines.emulation.dataplanes.link_events import carried_out
from engines.emulation.hosts.hosts import HostOptions
from engines.emulation.hosts.network import FabricNet
from engines.emulation.ims import verdict
from engines.emulation.ims.checks import STARTING_S, extra_us
from engines.emulation.ims.system import Place, RealIms, Service
from engines.emulation.kernel.cpu import CpuSampler
from engines.emulation.sandbox.inside import Inside
from engines.ims import PCSCF, ROLES, SCSCF, Measurement, checked, ims_result, measured, most_instances
from fabric.plan import PS_PER_US, NetworkPlan
from model.network_plan import downlink, plan_for, uplink
from model.result import RunResult
from model.spec import STRICT, RunSpec
from topos.topology import Topology
from workloads import sip
from workloads.sip import SipSettings

FOLDER = Path("/tmp/ims")
"""In the run's private /tmp, so that it ends with the run."""


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Turn the error of a program that has ended, or does not answer, into a RunError."""
    try:
        yield
    except OSError as error:
        raise RunError(f"a program of the IMS did not answer: {error}") from error


@_in_words()
def run_point(inside: Inside) -> int:
    """Run the RunSpec of the request and report its result."""
    spec = RunSpec.from_json(inside.request["spec"])
    topology = topos.build(spec.topology.kind, spec.topology.params)
    settings = checked(spec, topology)
    inside.report({"phase": "network", "seconds": STARTING_S})
    plane = FabricDataPlane(
        topology, plan_of(spec, topology, settings), default_tuning(spec.link.rate_mbps, STRICT)
    )
    with FabricNet(topology, plane, HostOptions()) as net:
        ims = RealIms(settings, place_of(topology, net))
        try:
            ims.start()
            service = ims.measure()
            inside.report({"phase": "measure", "seconds": spec.warmup_s + spec.seconds})
            found, machine = _measure(ims, settings, spec, topology, plane)
        finally:
            ims.close()
    result = _result(spec, settings, ims, service, found, machine)
    for message in wire.messages(result, result.samples.items()):
        inside.report(message)
    return 0


def _measure(
    ims: RealIms, settings: SipSettings, spec: RunSpec, topology: Topology, plane: FabricDataPlane
) -> tuple[Measurement, dict[str, float]]:
    """Run the load; return what was measured of it and of the machine."""
    cpu, paused_s = CpuSampler(), plane.reading().paused_s
    used_s, waited_s = {role: ims.cpu_s(role) for role in ROLES}, ims.waited_s()
    seconds = round(spec.warmup_s + spec.seconds)
    with carried_out(spec.events, plane):
        found = measured(ims, settings, seconds, most_instances(topology))
    waits_s = [now_s - waited_s.get(pid, 0.0) for pid, now_s in ims.waited_s().items()]
    shares = {role: 100 * (ims.cpu_s(role) - used_s[role]) / seconds for role in ROLES}
    return found, {
        "cpu_busy_pct": cpu.sample().machine.busy_pct,
        "waited_pct": 100 * max(waits_s) / seconds,
        "paused_pct": 100 * (plane.reading().paused_s - paused_s) / seconds,
        **{f"{role}_machine_cpu_pct": share for role, share in shares.items()},
    }


def _result(
    spec: RunSpec,
    settings: SipSettings,
    ims: RealIms,
    service: Service,
    found: Measurement,
    machine: Mapping[str, float],
) -> RunResult:
    times_us = _measured(service)
    own = {f"measured_{name}_us": us for name, us in times_us.items()}
    own |= {f"{role}_served_pct": pct for role, pct in verdict.served_pct(found.readings).items()}
    result = ims_result(settings, round(spec.warmup_s), found, _knees(settings, service))
    reasons = verdict.doubts(settings, times_us, found, machine, events=bool(spec.events))
    provenance = {
        "steps": found.steps,
        "slow_receive": True,
        "scheduling": ims.scheduled,
        "ready_ms": ims.ready_ms,
    }
    metrics = {**result.metrics, **own, **machine}
    return dataclasses.replace(result, metrics=metrics, provenance=provenance).doubted(reasons)


def place_of(topology: Topology, net: FabricNet) -> Place:
    """Return the roles of the hosts of a running network."""
    hosts = {host.name: host for host in net.host_refs()}
    names = topology.host_names
    users, hss, pcscfs, scscfs = sip.roles_of(names, 1)
    return Place(
        users=hosts[users],
        hss=hosts[hss],
        functions={PCSCF: tuple(hosts[p] for p in pcscfs), SCSCF: tuple(hosts[s] for s in scscfs)},
        addresses={name: topology.nics_of(topology.index(name))[0].ip for name in names},
        folder=FOLDER,
    )


def plan_of(spec: RunSpec, topology: Topology, settings: SipSettings) -> NetworkPlan:
    """Return the plan of the network, with the look-up time as delay of the HSS's link."""
    plan = plan_for(spec, topology)
    names = topology.host_names
    link = topology.nics_of(topology.index(sip.roles_of(names, 1)[1]))[0].link
    delay_ps = plan.delay_ps.copy()
    delay_ps[[uplink(link), downlink(link)]] += round(extra_us(spec, settings, topology) * PS_PER_US)
    return dataclasses.replace(plan, delay_ps=delay_ps)


def _knees(settings: SipSettings, service: Service) -> dict[str, float]:
    """Return the knees of the measured service times, at scale 100."""
    real = dataclasses.replace(
        settings,
        message_us=max(1, round(1e6 * service.pcscf_s * settings.share)),
        scscf_us=round(1e6 * service.scscf_s * settings.share),
        lookup_us=round(1e6 * service.lookup_s * settings.share),
    )
    return {
        "pcscf_knee_per_s": real.pcscf_knee(real.pcscf),
        "scscf_knee_per_s": real.scscf_knee(real.scscf),
    }


def _measured(service: Service) -> dict[str, float]:
    """Return the measured times in us."""
    return {
        "message": 1e6 * service.pcscf_s,
        "scscf": 1e6 * service.scscf_s,
        "lookup": 1e6 * service.lookup_s,
    }
