"""A point about SIP calls between real programs: its checks outside, its run inside private namespaces.

The fabric runs by the strict clock: servers and users keep real time, so links must not stand still.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import topos
from common.errors import RunError, UsageError
from engines.emulation.dataplanes.fabric_dataplane import FabricDataPlane, default_tuning
from engines.emulation.dataplanes.registry import FABRIC
from engines.emulation.hosts.hosts import HostOptions
from engines.emulation.hosts.network import FabricNet
from engines.emulation.ims import support
from engines.emulation.ims.system import Place, RealIms, Service
from engines.emulation.kernel.cpu import CpuSampler
from engines.emulation.sandbox.inside import Inside
from engines.ims.checks import checked, most_instances
from engines.ims.readings import PCSCF, SCSCF
from engines.ims.run import measured
from engines.ims.summarise import summarise
from engines.kernel_hosts import wire
from fabric.plan import PS_PER_US, NetworkPlan
from model.network_plan import downlink, plan_for, uplink
from model.reasons import SATURATED, STRETCHED, Fault, Reason
from model.spec import STRICT, RunSpec
from topos.topology import Topology
from workloads import sip
from workloads.sip import CONSTANT, SipSettings

FOLDER = Path("/tmp/ims")
"""In the run's private /tmp, so that it ends with the run."""
BUFFER = 185
STARTING_S = 5.0
SLACK_S = 60.0
OFF_PCT = 15.0
"""A service time further off than this is the machine's."""
BUSY_PCT = 95.0
PAUSED_PCT = 2.0


def check(spec: RunSpec) -> None:
    """Raise UsageError for what the real IMS does not have, HostUnfitError for missing programs."""
    topology = topos.build(spec.topology.kind, spec.topology.params)
    settings = checked(spec, topology)
    if spec.dataplane != FABRIC:
        raise UsageError(f"workload {sip.MATRIX}: choose --dataplane {FABRIC}, whose links have delays")
    if settings.arrivals != CONSTANT:
        raise UsageError(f"workload {sip.MATRIX}: SIPp calls at constant intervals: add arrivals={CONSTANT}")
    if settings.buffer != BUFFER:
        raise UsageError(
            f"workload {sip.MATRIX}: a real socket holds about {BUFFER} messages: leave out buffer"
        )
    if spec.events:
        raise UsageError(f"--event: not with workload {sip.MATRIX}")
    if _extra_us(spec, settings) < 0:
        raise UsageError(
            f"workload {sip.MATRIX}: links of {spec.link.delay_us:g} us delay already take longer than a "
            "look-up: choose a smaller --delay, or a larger lookup_us"
        )
    support.check()


def expected_s(spec: RunSpec) -> float:
    return STARTING_S + spec.warmup_s + spec.seconds


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
    plan = _with_delay(plan_for(spec, topology), spec, topology, settings)
    plane = FabricDataPlane(topology, plan, default_tuning(spec.link.rate_mbps, STRICT))
    with FabricNet(topology, plane, HostOptions()) as net:
        ims = RealIms(settings, _place(topology, net))
        try:
            ims.start()
            service = ims.measure()
            inside.report({"phase": "measure", "seconds": spec.warmup_s + spec.seconds})
            cpu, before_s = CpuSampler(), plane.reading().paused_s
            seconds = round(spec.warmup_s + spec.seconds)
            found = measured(ims, settings, seconds, most_instances(topology))
            busy_pct = cpu.sample().machine.busy_pct
            paused_pct = 100 * (plane.reading().paused_s - before_s) / seconds
        finally:
            ims.close()
    result = summarise(settings, round(spec.warmup_s), found, _knees(settings, service))
    result = dataclasses.replace(
        result,
        metrics={**result.metrics, **_measured(service), "cpu_busy_pct": busy_pct, "paused_pct": paused_pct},
        provenance={"steps": found.steps, "slow_receive": True},
    ).doubted(_doubts(settings, service, busy_pct, paused_pct))
    inside.report({"result": wire.encode(result)})
    return 0


def _place(topology: Topology, net: FabricNet) -> Place:
    hosts = {host.name: host for host in net.host_refs()}
    names = [topology.nodes[host].name for host in topology.hosts]
    users, hss, pcscfs, scscfs = sip.roles_of(names, 1)
    return Place(
        users=hosts[users],
        hss=hosts[hss],
        functions={PCSCF: tuple(hosts[p] for p in pcscfs), SCSCF: tuple(hosts[s] for s in scscfs)},
        addresses={name: topology.nics_of(topology.index(name))[0].ip for name in names},
        folder=FOLDER,
    )


def _extra_us(spec: RunSpec, settings: SipSettings) -> float:
    """Return the delay to add to the HSS's link, each way, so that a look-up takes its time."""
    return settings.lookup_us / settings.share / 2 - 2 * (spec.link.delay_us + spec.link.host_delay_us)


def _with_delay(plan: NetworkPlan, spec: RunSpec, topology: Topology, settings: SipSettings) -> NetworkPlan:
    names = [topology.nodes[host].name for host in topology.hosts]
    link = topology.nics_of(topology.index(sip.roles_of(names, 1)[1]))[0].link
    delay_ps = plan.delay_ps.copy()
    delay_ps[[uplink(link), downlink(link)]] += round(_extra_us(spec, settings) * PS_PER_US)
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
    return {f"measured_{name}_us": 1e6 * seconds for name, seconds in _named(service)}


def _named(service: Service) -> tuple[tuple[str, float], ...]:
    return ("message", service.pcscf_s), ("scscf", service.scscf_s), ("lookup", service.lookup_s)


def _doubts(
    settings: SipSettings, service: Service, busy_pct: float, paused_pct: float = 0.0
) -> list[Reason]:
    """Return why the numbers may be the machine's: a service time that is off, no idle CPU time, or links
    that stood still while the machine stalled."""
    asked = {"message": settings.message_us, "lookup": settings.lookup_us}
    found = []
    for name, seconds in _named(service):
        if name not in asked:
            continue
        off_pct = 100 * (1e6 * seconds * settings.share / asked[name] - 1)
        if not math.isfinite(off_pct) or abs(off_pct) > OFF_PCT:
            words = f"CPU: the service time of a {name} is {off_pct:+.0f} % off what was asked"
            found.append(Reason(SATURATED, words, Fault.UNKNOWN, (("off_pct", off_pct),)))
    if paused_pct > PAUSED_PCT:
        words = f"CPU: the fabric's clock was paused for {paused_pct:.0f} % of the time"
        found.append(Reason(STRETCHED, words, Fault.UNKNOWN, (("paused_pct", paused_pct),)))
    if busy_pct > BUSY_PCT:
        words = f"CPU: no idle time ({busy_pct:.0f} % busy)"
        found.append(Reason(SATURATED, words, Fault.UNKNOWN, (("busy_pct", busy_pct),)))
    return found
