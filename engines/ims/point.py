"""A point about SIP calls between real programs, inside private namespaces.

The fabric runs by the strict clock: servers and users keep real time, so links must not stand still.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from common.errors import RunError
from engines import wire
from engines.emulation.dataplanes.control import LinkEvents
from engines.emulation.dataplanes.fabric_dataplane import FabricDataPlane, default_tuning
from engines.emulation.hosts.hosts import HostOptions
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel.proc import CpuSampler
from engines.emulation.sandbox.inside import Inside
from engines.ims.calls import (
    HALF,
    PCSCF,
    ROLES,
    SCSCF,
    ImsReading,
    Measurement,
    checked,
    computed_knees,
    ims_result,
    measured,
    most_instances,
    signals,
)
from engines.ims.programs import PRIORITY
from engines.ims.real import STARTING_S, extra_us
from engines.ims.system import RealIms
from fabric.plan import PS_PER_US, NetworkPlan
from model.links import downlink, uplink
from model.network_plan import plan_for
from model.reasons import SATURATED, STRETCHED, Fault, Reason
from model.result import RunResult
from model.spec import STRICT, RunSpec
from topos.topology import Topology
from workloads import sip
from workloads.sip import SipSettings


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
    topology = spec.network()
    settings = checked(spec, topology)
    inside.report({"phase": "network", "seconds": STARTING_S})
    plane = FabricDataPlane(
        topology, plan_of(spec, topology, settings), default_tuning(spec.link.rate_mbps, STRICT)
    )
    with FabricNet(topology, plane, HostOptions()) as net:
        ims = RealIms(settings, topology, {host.name: host for host in net.host_refs()})
        try:
            ims.start()
            ims.measure()
            inside.report({"phase": "measure", "seconds": spec.warmup_s + spec.seconds})
            found, machine = _measure(ims, settings, spec, topology, plane)
        finally:
            ims.close()
    result = _result(spec, settings, ims, found, machine)
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
    with LinkEvents(spec.events, plane.set_share):
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
    found: Measurement,
    machine: Mapping[str, float],
) -> RunResult:
    own = {f"measured_{name}_us": us for name, us in ims.times_us.items()}
    own |= {f"{role}_served_pct": pct for role, pct in served_pct(found.readings).items()}
    result = ims_result(settings, round(spec.warmup_s), found, _knees(settings, ims.times_us))
    reasons = doubts(settings, ims.times_us, found, machine, events=bool(spec.events))
    provenance = {
        "steps": found.steps,
        "slow_receive": True,
        "scheduling": f"SCHED_RR {PRIORITY}",
        "ready_ms": ims.ready_ms,
    }
    metrics = {**result.metrics, **own, **machine}
    return dataclasses.replace(result, metrics=metrics, provenance=provenance).doubted(reasons)


def plan_of(spec: RunSpec, topology: Topology, settings: SipSettings) -> NetworkPlan:
    """Return the plan of the network, with the look-up time as delay of the HSS's link."""
    plan = plan_for(spec, topology)
    names = topology.host_names
    link = topology.nics_of(topology.index(sip.roles_of(names, 1)[1]))[0].link
    delay_ps = plan.delay_ps.copy()
    delay_ps[[uplink(link), downlink(link)]] += round(extra_us(spec, settings, topology) * PS_PER_US)
    return dataclasses.replace(plan, delay_ps=delay_ps)


def _knees(settings: SipSettings, measured_us: Mapping[str, float]) -> dict[str, float]:
    """Return the knees of the measured service times, at scale 100."""
    message_us, scscf_us, lookup_us = (round(us * settings.share) for us in measured_us.values())
    return computed_knees(
        dataclasses.replace(settings, message_us=max(1, message_us), scscf_us=scscf_us, lookup_us=lookup_us)
    )


OFF_PCT = 15.0
"""If a service time before the run is further off than this, the machine is the cause."""
SERVED_OFF_PCT = 5.0
"""A full function that serves this much less is slower than its knee, and knees are as close as 4 %."""
OFFERED_OFF_PCT = 5.0
BUSY_PCT = 95.0
WAITED_PCT = 2.0
"""How long a program that is ready may wait for a CPU, in percent of the run: the closest knees are 4 %
apart."""
PAUSED_PCT = 2.0
MIN_FULL_S = 3
"""Seconds with a full buffer from which the rate of service is judged."""
_TITLES = {PCSCF: "P-CSCF", SCSCF: "S-CSCF"}


def doubts(
    settings: SipSettings,
    measured_us: Mapping[str, float],
    found: Measurement,
    machine: Mapping[str, float],
    events: bool = False,
) -> list[Reason]:
    """Return the reasons. `measured_us` has the service times measured before the run, of a message and of a
    look-up. `machine` has `cpu_busy_pct`, `paused_pct` of the fabric's clock, and `waited_pct`, the share of
    the run in which the program that waited most was ready without a CPU. All have real-time priority, so
    others may keep the machine busy. With `events`, a full server may wait for a cut link instead."""
    reasons = list(_service_times(settings, measured_us))
    served = {} if events else served_pct(found.readings)
    reasons += [_slow(role, pct) for role, pct in served.items() if pct < 100 - SERVED_OFF_PCT]
    off_pct = _offered_off_pct(settings, found.readings)
    if abs(off_pct) > OFFERED_OFF_PCT:
        words = f"CPU: users called {off_pct:+.0f} % off the requested rate"
        reasons.append(_of(SATURATED, words, off_pct=off_pct))
    return reasons + list(_contention(machine))


def served_pct(readings: Sequence[ImsReading]) -> dict[str, float]:
    """Return, for each function, how busy instances were in seconds that began and ended with a buffer at
    least half full, in percent of their time.

    By the measured service times it is 100: a full function that serves less has become slower since. A
    function with fewer than MIN_FULL_S such seconds is left out.
    """
    found = {}
    for role in (PCSCF, SCSCF):
        busy = [share for a, b in pairwise(readings) for share in _full(role, a, b)]
        if len(busy) >= MIN_FULL_S:
            found[role] = 100 * statistics.fmean(busy)
    return found


def _full(role: str, before: ImsReading, now: ImsReading) -> Iterator[float]:
    """Return the busy share of each instance whose buffer was half full at both ends of the interval."""
    fills = {(each.role, each.number): each.fill for each in before.instances}
    ours = [each for each in now.instances if each.role == role]
    for instance, signal in zip(ours, signals(role, before, now).instances, strict=True):
        if min(instance.fill, fills.get((role, instance.number), 0.0)) >= HALF:
            yield signal.busy


def _service_times(settings: SipSettings, measured_us: Mapping[str, float]) -> Iterator[Reason]:
    for name, asked_us in (("message", settings.message_us), ("lookup", settings.lookup_us)):
        off_pct = 100 * (measured_us[name] * settings.share / asked_us - 1)
        if not math.isfinite(off_pct) or abs(off_pct) > OFF_PCT:
            words = f"CPU: the service time of a {name} is {off_pct:+.0f} % off the requested time"
            yield _of(SATURATED, words, off_pct=off_pct)


def _contention(machine: Mapping[str, float]) -> Iterator[Reason]:
    paused_pct, waited_pct = machine["paused_pct"], machine["waited_pct"]
    if paused_pct > PAUSED_PCT:
        words = f"CPU: the fabric's clock was paused for {paused_pct:.0f} % of the time"
        yield _of(STRETCHED, words, paused_pct=paused_pct)
    if machine["cpu_busy_pct"] > BUSY_PCT and waited_pct > WAITED_PCT:
        words = f"CPU: no idle time, and a program waited for {waited_pct:.1f} % of the time"
        yield _of(SATURATED, words, waited_pct=waited_pct)


def _slow(role: str, pct: float) -> Reason:
    words = f"CPU: a full {_TITLES[role]} served {pct:.0f} % of what its service times give"
    return _of(SATURATED, words, served_pct=pct)


def _offered_off_pct(settings: SipSettings, readings: Sequence[ImsReading]) -> float:
    seconds = len(readings) - 1
    asked = sum(settings.rates(second / seconds)[0] for second in range(seconds))
    return 100 * (readings[-1].calls.offered / (asked * _counted(readings)) - 1) if asked else 0.0


def _counted(readings: Sequence[ImsReading]) -> float:
    """Return the share of the run that the last counts cover."""
    return 1 - readings[-1].calls.age_s / readings[-1].t_s


def _of(kind: str, words: str, **numbers: float) -> Reason:
    return Reason(kind, words, Fault.UNKNOWN, tuple(numbers.items()))
