"""SIP calls between real programs: what they need, their run, and what makes it doubtful."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from common.errors import HostUnfitError, UsageError
from engines.emulation import programs
from engines.emulation.dataplanes.dataplane import FABRIC
from engines.emulation.programs import HostNetwork
from engines.emulation.sandbox.client import require
from engines.engine import Observer
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
from engines.ims.programs import KAMAILIO, REDIS, SIPP
from engines.ims.system import RealIms
from fabric.plan import PS_PER_US, NetworkPlan
from model.links import downlink, uplink
from model.network_plan import plan_for
from model.reasons import SATURATED, Fault, Reason
from model.result import RunResult
from model.spec import RunSpec
from topos.topology import Topology
from workloads import sip
from workloads.sip import CONSTANT, SipSettings


def check(spec: RunSpec) -> None:
    """Raise UsageError for what the real IMS does not have, HostUnfitError for missing programs."""
    topology = spec.network()
    settings = checked(spec, topology)
    if spec.dataplane != FABRIC:
        raise UsageError(f"workload {sip.MATRIX}: choose --dataplane {FABRIC}, whose links have delays")
    if settings.arrivals != CONSTANT:
        raise UsageError(f"workload {sip.MATRIX}: SIPp calls at constant intervals: add arrivals={CONSTANT}")
    if extra_us(spec, settings, topology) < 0:
        raise UsageError(
            f"workload {sip.MATRIX}: links of {spec.link.delay_us:g} us delay already take longer than a "
            "look-up: choose a smaller --delay, or a larger lookup_us"
        )
    check_installed()
    require("refabric run ...")


def memory_mb(spec: RunSpec) -> float:
    """Return the peak: a dozen servers of 64 MB shared memory, and SIPp."""
    del spec
    return 1500.0


def expected_s(spec: RunSpec) -> float:
    return programs.STARTING_S + spec.warmup_s + spec.seconds


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run the point (`on_hosts`, inside)."""
    return programs.spawned(spec, observer, raw, expected_s(spec))


def extra_us(spec: RunSpec, settings: SipSettings, topology: Topology) -> float:
    """Return the delay to add to the HSS's link, each way, so that a look-up takes its time.

    Paths from other S-CSCFs than the first may be some links longer or shorter.
    """
    names = topology.host_names
    _, hss, _, scscfs = sip.roles_of(names, 1)
    path = topology.shortest_paths(topology.index(scscfs[0]), topology.index(hss))[0]
    links_us = (len(path) - 1) * spec.link.delay_us + 2 * spec.link.host_delay_us
    return settings.lookup_us / settings.share / 2 - links_us


MODULE = "*/kamailio/modules/ndb_redis.so"
"""Of the package kamailio-redis-modules, below LIBRARIES."""
LIBRARIES = Path("/usr/lib")
INSTALL = "sudo setup/install.sh --ims"


def missing() -> list[str]:
    """Return the names of missing programs."""
    absent = [Path(each).name for each in (KAMAILIO, SIPP, REDIS) if not os.access(each, os.X_OK)]
    module = [] if any(LIBRARIES.glob(MODULE)) else ["kamailio's ndb_redis.so"]
    return [*absent, *module, *([] if shutil.which("gcc") else ["gcc"])]


def check_installed() -> None:
    """Raise HostUnfitError with the command that installs the programs, if some are missing."""
    if absent := missing():
        raise HostUnfitError(f"a real IMS needs {', '.join(absent)}: run {INSTALL}")


def on_hosts(network: HostNetwork) -> RunResult:
    """Run the load and return the result."""
    spec, topology = network.spec, network.topology
    settings = checked(spec, topology)
    ims = RealIms(settings, topology, network.hosts, network.programs)
    ims.start()
    ims.measure()
    used_s, seconds = {role: ims.cpu_s(role) for role in ROLES}, round(spec.warmup_s + spec.seconds)
    with network.measuring():
        found = measured(ims, settings, seconds, most_instances(topology))
    shares = {f"{role}_machine_cpu_pct": 100 * (ims.cpu_s(role) - used_s[role]) / seconds for role in ROLES}
    own = {f"measured_{name}_us": us for name, us in ims.times_us.items()}
    own |= {f"{role}_served_pct": pct for role, pct in served_pct(found.readings).items()}
    result = ims_result(settings, round(spec.warmup_s), found, _knees(settings, ims.times_us))
    return dataclasses.replace(
        result,
        metrics={**result.metrics, **own, **shares},
        provenance={"steps": found.steps, "slow_receive": True, "ready_ms": ims.ready_ms},
    ).doubted(doubts(settings, ims.times_us, found, events=bool(spec.events)))


def plan_of(spec: RunSpec, topology: Topology) -> NetworkPlan:
    """Return the plan of the network, with the look-up time as delay of the HSS's link."""
    plan, settings = plan_for(spec, topology), sip.settings(spec.workload.params)
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
MIN_FULL_S = 3
"""Seconds with a full buffer from which the rate of service is judged."""
_TITLES = {PCSCF: "P-CSCF", SCSCF: "S-CSCF"}


def doubts(
    settings: SipSettings,
    measured_us: Mapping[str, float],
    found: Measurement,
    events: bool = False,
) -> list[Reason]:
    """Return the reasons. `measured_us` has the service times measured before the run, of a message and of a
    look-up. With `events`, a full server may wait for a cut link instead of a CPU."""
    reasons = list(_service_times(settings, measured_us))
    served = {} if events else served_pct(found.readings)
    reasons += [_slow(role, pct) for role, pct in served.items() if pct < 100 - SERVED_OFF_PCT]
    off_pct = _offered_off_pct(settings, found.readings)
    if abs(off_pct) > OFFERED_OFF_PCT:
        words = f"CPU: users called {off_pct:+.0f} % off the requested rate"
        reasons.append(_of(SATURATED, words, off_pct=off_pct))
    return reasons


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
