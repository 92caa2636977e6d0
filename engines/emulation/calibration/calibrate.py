"""The highest link rate this machine carries for a topology: measured by doing, remembered per machine.

A trial is five seconds of one_to_one with 8 subflows, the most demanding point of the figure. A rate is
carried when the engine's own verdict on the trial doubts no number for a reason that a lower rate would cure,
and the machine is at most FIT_PCT busy. A rate is refused only after a second trial, since noise passes.
docs/calibration.md says it for readers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import topos
from common.errors import HostUnfitError, RunError
from engines.emulation.calibration import calibration_file
from engines.emulation.calibration.calibration_file import Entry
from engines.emulation.engine import UNKEPT, MininetEngine
from engines.emulation.verdict.idle_probe import measure
from engines.engine import Engine, Observer, Silent
from model.machine.capacity import FIT_PCT, FULL_PCT, MIN_RATE_MBPS, Measured
from model.machine.idle_noise import differs
from model.noise import queue_us
from model.reasons import (
    CONTROL,
    DRIFT,
    FALLBACK,
    REPAIRS,
    UNSTEADY,
    texts,
)
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec

RATES_MBPS = (MIN_RATE_MBPS, 5.0, 10.0, 20.0, 50.0, 100.0)
SUBFLOWS = 8
TRAFFIC = "native"
"""What sweeps use unless told otherwise (harness/plan/options.py)."""
WARMUP_S, SECONDS = 4.0, 5.0
TRIES = 2
BUDGET_S = 75.0
"""Once trials took this long, no rate is tried a second time: all of them shall take two minutes at most."""
NOISE_S, SURE_S = 1.0, 3.0
FRESH_S = 24 * 3600.0
OF_A_SHORT_TRIAL = {UNSTEADY, DRIFT}
"""Reasons that five seconds have by themselves: flows have not settled."""
OF_ANY_RATE = {CONTROL, FALLBACK, REPAIRS}
"""Reasons that no lower rate cures; the points themselves will have them too."""
_GUESS_MBPS_HOSTS = 640.0
"""Where the search starts: 5 Mb/s at 128 hosts. Only the number of trials depends on it."""


@dataclass(frozen=True)
class Trial:
    """What came of one trial; `wrong` is why the rate is too much, empty where it is carried."""

    rate_mbps: float
    wrong: str
    busy_pct: float = math.nan
    late_p99_us: float = math.nan
    seen: Measured | None = None

    @property
    def hopeless(self) -> bool:
        """Whether noise alone does not explain it: there is no CPU time left."""
        return self.busy_pct > FULL_PCT


def cached(topology: TopologySpec, highest_mbps: float = math.inf) -> float | None:
    """Return the rate (Mb/s) measured earlier, as if the search were bounded by `highest_mbps`; None where
    it was not measured."""
    entry = _entry(topology, highest_mbps)
    return None if entry is None else entry.rate_up_to(highest_mbps)


def rates() -> list[tuple[TopologySpec, float]]:
    """Return every topology whose highest rate was measured on this machine and kernel, with it (Mb/s)."""
    topologies: list[TopologySpec] = []
    for entry in calibration_file.entries():
        if entry.topology not in topologies:
            topologies.append(entry.topology)
    known = [(topology, cached(topology)) for topology in topologies]
    return [(topology, rate) for topology, rate in known if rate is not None]


def measured() -> tuple[Measured, ...]:
    """Return what trials on this machine and kernel carried, and how busy that kept it."""
    return tuple(trial for entry in calibration_file.entries() for trial in entry.trials)


def outdated(topology: TopologySpec, highest_mbps: float = math.inf) -> str:
    """Return why the rate that `cached` returns must be measured again, empty where it holds.

    Measures this machine's noise, unless the rate is older than a day.
    """
    entry = _entry(topology, highest_mbps)
    if entry is None:
        return ""
    age_s = time.time() - entry.measured_s
    if not 0 <= age_s < FRESH_S:
        return f"{entry.rate_mbps:g} Mb/s was measured more than a day ago"
    now = measure(NOISE_S)
    if differs(entry.noise, now):
        now = measure(SURE_S)  # noise comes and goes within seconds, and a calibration takes a minute
    if differs(entry.noise, now):
        then = f"when {entry.rate_mbps:g} Mb/s was measured, {entry.noise}"
        return f"the machine's noise has changed: {then}; now {now}"
    return ""


def calibrate(
    topology: TopologySpec,
    observer: Observer,
    engine: Engine | None = None,
    highest_mbps: float = math.inf,
) -> float:
    """Measure the rate (Mb/s), say what was found in one line, and remember it; two minutes at most.

    No rate above `highest_mbps` is tried. Raises HostUnfitError when the lowest rate is not carried, or the
    machine cannot emulate at all.
    """
    engine = engine or MininetEngine()
    engine.check(_spec(topology, MIN_RATE_MBPS))  # nobody else emulates while the noise is measured
    noise = measure(NOISE_S)
    observer.note(f"noise: {noise}")
    allowed = [rate for rate in RATES_MBPS if rate <= highest_mbps] or [MIN_RATE_MBPS]
    trials = _search(topology, allowed, observer, engine)
    carried = [trial for trial in trials if not trial.wrong]
    if not carried:
        raise HostUnfitError(_too_slow(topology, trials[-1]))
    best = max(carried, key=lambda trial: trial.rate_mbps)
    observer.note(found(topology, best, trials))
    seen = tuple(trial.seen for trial in trials if trial.seen)
    entry = Entry(topology, best.rate_mbps, time.time(), noise, seen, highest_mbps)
    try:
        calibration_file.remember(entry)
    except OSError as error:
        where = f"{calibration_file.path()} ({error.strerror})"
        observer.note(f"{best.rate_mbps:g} Mb/s could not be noted in {where}: measured anew next time")
    return best.rate_mbps


def _entry(topology: TopologySpec, highest_mbps: float) -> Entry | None:
    """Return the newest entry that says what a search up to `highest_mbps` would find."""
    entries = [entry for entry in calibration_file.entries() if entry.topology == topology]
    telling = [entry for entry in entries if entry.rate_up_to(highest_mbps) is not None]
    return max(telling, key=lambda entry: entry.measured_s, default=None)


def _search(
    topology: TopologySpec, allowed: Sequence[float], observer: Observer, engine: Engine
) -> list[Trial]:
    """Try rates from a guess on: upwards as long as they are carried, else downwards until one is."""
    hosts = len(topos.build(topology.kind, topology.params).hosts)
    step = max((i for i, rate in enumerate(allowed) if rate <= _GUESS_MBPS_HOSTS / hosts), default=0)
    until_s = time.monotonic() + BUDGET_S
    carried: dict[int, bool] = {}
    trials: list[Trial] = []
    while 0 <= step < len(allowed) and step not in carried:
        trials += _tries(_spec(topology, allowed[step]), until_s, observer, engine)
        carried[step] = not trials[-1].wrong
        step += 1 if carried[step] else -1
    return trials


def _tries(spec: RunSpec, until_s: float, observer: Observer, engine: Engine) -> list[Trial]:
    """Try one rate, and once more where noise may have been what was wrong."""
    trials: list[Trial] = []
    while True:
        trial = _try(spec, engine)
        trials.append(trial)
        final = not trial.wrong or trial.hopeless or len(trials) == TRIES or time.monotonic() > until_s
        observer.note(f"{_name(spec.topology)} at {_told(trial)}{'' if final else '; trying again'}")
        if final:
            return trials


def _try(spec: RunSpec, engine: Engine) -> Trial:
    rate_mbps = spec.link.rate_mbps
    engine.check(spec)
    try:
        result = engine.run(spec, Silent(), UNKEPT)
    except RunError as error:  # flows that never connect, or die: what too much looks like at its worst
        return Trial(rate_mbps, str(error))
    metrics = result.metrics
    busy_pct = metrics["cpu_busy_pct"]
    late_us = metrics.get("late_p99_us", math.nan)
    return Trial(
        rate_mbps, wrong(result), busy_pct, late_us, Measured(metrics["packet_hops_per_s"], busy_pct)
    )


def wrong(result: RunResult) -> str:
    """Return why the trial's rate is too much for the machine: its verdict, or its CPUs; empty where it is
    not."""
    doubts = () if result.status is Status.OK else result.reasons
    counted = [reason for reason in doubts if reason.kind not in OF_A_SHORT_TRIAL | OF_ANY_RATE]
    if counted:
        return texts(counted)
    busy_pct = result.metrics["cpu_busy_pct"]
    if busy_pct > FIT_PCT:
        return f"{busy_pct:.1f} % busy leaves no reserve, {FIT_PCT:.0f} is the most"
    return ""


def found(topology: TopologySpec, best: Trial, trials: Sequence[Trial]) -> str:
    """Return what a calibration found as one line: the rate, what it rests on, and why no higher one."""
    above = [trial for trial in trials if trial.rate_mbps > best.rate_mbps]
    highest = "the highest this machine carries now" if above else "carried; higher rates were not tried"
    text = f"link rate at {_name(topology)}: {best.rate_mbps:g} Mb/s: {highest} ({_load(best)}"
    if above:
        refused = min(reversed(above), key=lambda trial: trial.rate_mbps)
        text += f"; {refused.rate_mbps:g} Mb/s is too much: {refused.wrong}"
    return f"{text})"


def _too_slow(topology: TopologySpec, last: Trial) -> str:
    k = topology.params.get("k", 0)
    smaller = f"a smaller tree (--k {max(4, k // 4 * 2)}), " if k > 4 else ""
    return (
        f"this machine does not carry {_name(topology)} at {last.rate_mbps:g} Mb/s now: {last.wrong}. On "
        "slower links bursts and queues last for seconds, and would be what is measured. Choose simulated "
        f"hosts (the same command with --engine simulator), {smaller}or a machine with more CPUs; or give "
        "--rate MBPS and expect suspect points"
    )


def _told(trial: Trial) -> str:
    """`10 Mb/s: 41 % busy, ...: carried`."""
    load = "" if math.isnan(trial.busy_pct) else f"{_load(trial)}: "
    return f"{trial.rate_mbps:g} Mb/s: {load}{f'too much: {trial.wrong}' if trial.wrong else 'carried'}"


def _load(trial: Trial) -> str:
    """How busy, and how late beside the delay that matters: a full queue of the trial's."""
    busy = f"{trial.busy_pct:.0f} % busy"
    if math.isnan(trial.late_p99_us):
        return busy
    full_ms, late_ms = queue_us(LinkSpec(trial.rate_mbps)) / 1000, trial.late_p99_us / 1000
    return f"{busy}, 99 % of frames less than {late_ms:.2g} ms late where a full queue takes {full_ms:.0f} ms"


def _spec(topology: TopologySpec, rate_mbps: float) -> RunSpec:
    return RunSpec(
        link=LinkSpec(rate_mbps),
        topology=topology,
        transport=TransportSpec(SUBFLOWS),
        traffic=TRAFFIC,
        warmup_s=WARMUP_S,
        seconds=SECONDS,
    )


def _name(topology: TopologySpec) -> str:
    size = ", ".join(topos.told(topology.kind, topology.params))
    return size if topology.kind == "fat_tree" else f"{topology.kind} {size}"
