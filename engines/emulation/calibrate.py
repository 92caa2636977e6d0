"""The highest link rate this machine sustains for a topology: measured by trials, stored per machine.

A trial runs one_to_one with 8 subflows for five seconds, the most demanding point of the figure. The machine
sustains a rate if the engine's verdict has no reason that a lower rate would remove, and if the machine is at
most FIT_PCT busy. Noise passes, so a rate is rejected only after a second trial. docs/fidelity.md explains
the method.

The file of calibrated rates has one entry per topology, machine, kernel and bound of the search. A search
with a bound does not replace a search without one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import topos
from common import files, stored_json
from common.errors import HostUnfitError, RunError, StoreError, UsageError
from common.privileges import check_private
from engines.emulation.engine import MininetEngine
from engines.emulation.noise import measure
from engines.emulation.outside import UNKEPT
from engines.engine import Engine, Observer, Silent
from engines.provenance import machine
from model.machine import (
    FIT_PCT,
    FULL_PCT,
    MIN_RATE_MBPS,
    Capacity,
    MachineNoise,
    Utilisation,
    differs,
)
from model.noise import queue_us
from model.reasons import CONTROL, DRIFT, FALLBACK, REPAIRS, UNSTEADY, texts
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec

RATES_MBPS = (MIN_RATE_MBPS, 5.0, 10.0, 20.0, 50.0, 100.0)
SUBFLOWS = 8
TRAFFIC = "native"
"""The default traffic of sweeps (harness/options/options.py)."""
WARMUP_S, SECONDS = 4.0, 5.0
TRIES = 2
BUDGET_S = 75.0
"""No rate gets a second trial once trials took this long; a calibration must end within two minutes."""
NOISE_S, SURE_S = 1.0, 3.0
HOW_LONG = "up to two minutes, once a day"
FRESH_S = 24 * 3600.0
OF_A_SHORT_TRIAL = {UNSTEADY, DRIFT}
"""Reasons that appear in any five-second trial, because flows have not settled."""
OF_ANY_RATE = {CONTROL, FALLBACK, REPAIRS}
"""Reasons that a lower rate does not remove; the points themselves will have them too."""
_GUESS_MBPS_HOSTS = 640.0
"""Start of the search: 5 Mb/s at 128 hosts. Only the number of trials depends on it."""


@dataclass(frozen=True)
class RateTrial:
    """Outcome of one trial; `wrong` says why the rate is too high and is empty if it is sustained."""

    rate_mbps: float
    wrong: str
    busy_pct: float = math.nan
    late_p99_us: float = math.nan
    seen: Utilisation | None = None

    @property
    def hopeless(self) -> bool:
        """Whether no CPU time is left, which noise alone does not explain."""
        return self.busy_pct > FULL_PCT


def cached(topology: TopologySpec, highest_mbps: float = math.inf) -> float | None:
    """Return the stored rate (Mb/s) as a search bounded by `highest_mbps` would find it; None if unknown."""
    entry = _entry(topology, highest_mbps)
    return None if entry is None else entry.rate_up_to(highest_mbps)


def rates() -> list[tuple[TopologySpec, float]]:
    """Return the highest rate (Mb/s) of every topology that was measured on this machine and kernel."""
    topologies: list[TopologySpec] = []
    for entry in entries():
        if entry.topology not in topologies:
            topologies.append(entry.topology)
    known = [(topology, cached(topology)) for topology in topologies]
    return [(topology, rate) for topology, rate in known if rate is not None]


def measured() -> tuple[Utilisation, ...]:
    """Return the loads of all trials on this machine and kernel, and how busy they kept it."""
    return tuple(trial for entry in entries() for trial in entry.trials)


def outdated(topology: TopologySpec, highest_mbps: float = math.inf) -> str:
    """Return why the rate that `cached` returns must be measured again; empty if it is valid.

    Measures this machine's noise unless the rate is older than a day.
    """
    entry = _entry(topology, highest_mbps)
    if entry is None:
        return ""
    age_s = time.time() - entry.measured_s
    if age_s < 0:
        return f"{entry.rate_mbps:g} Mb/s was measured in the future: the clock has been set back"
    if age_s >= FRESH_S:
        return f"{entry.rate_mbps:g} Mb/s was measured more than a day ago"
    now = measure(NOISE_S)
    if differs(entry.noise, now):
        now = measure(SURE_S)  # Noise varies within seconds; a longer look is cheaper than a calibration.
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
    """Measure the rate (Mb/s), report it in one line, and store it; takes at most two minutes.

    Tries no rate above `highest_mbps`. Raises HostUnfitError if the machine does not sustain the lowest rate
    or cannot emulate at all, or if another emulation is running.
    """
    engine = engine or MininetEngine()
    engine.check(_spec(topology, MIN_RATE_MBPS))
    engine.take_machine()  # no other emulation disturbs what follows
    observer.note(f"measuring the link rate that this machine sustains at {_name(topology)}: {HOW_LONG}")
    observer.phase("measuring the machine's noise", NOISE_S)
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
    entry = Calibration(topology, best.rate_mbps, time.time(), noise, seen, highest_mbps)
    try:
        remember(entry)
    except StoreError as error:
        observer.note(f"{best.rate_mbps:g} Mb/s are not kept, and the next run will calibrate again: {error}")
    return best.rate_mbps


def _entry(topology: TopologySpec, highest_mbps: float) -> Calibration | None:
    """Return the newest entry that determines the result of a search up to `highest_mbps`."""
    of_topology = [entry for entry in entries() if entry.topology == topology]
    telling = [entry for entry in of_topology if entry.rate_up_to(highest_mbps) is not None]
    return max(telling, key=lambda entry: entry.measured_s, default=None)


def _search(
    topology: TopologySpec, allowed: Sequence[float], observer: Observer, engine: Engine
) -> list[RateTrial]:
    """Try rates from a guess: upwards while they are sustained, else downwards until one is."""
    hosts = len(topos.build(topology.kind, topology.params).hosts)
    step = max((i for i, rate in enumerate(allowed) if rate <= _GUESS_MBPS_HOSTS / hosts), default=0)
    until_s = time.monotonic() + BUDGET_S
    carried: dict[int, bool] = {}
    trials: list[RateTrial] = []
    while 0 <= step < len(allowed) and step not in carried:
        trials += _tries(_spec(topology, allowed[step]), until_s, observer, engine)
        carried[step] = not trials[-1].wrong
        step += 1 if carried[step] else -1
    return trials


def _tries(spec: RunSpec, until_s: float, observer: Observer, engine: Engine) -> list[RateTrial]:
    """Try one rate, and try it again if noise may be why it failed."""
    trials: list[RateTrial] = []
    while True:
        observer.phase(f"trying {spec.link.rate_mbps:g} Mb/s", engine.expected_s(spec))
        trial = _try(spec, engine)
        trials.append(trial)
        final = not trial.wrong or trial.hopeless or len(trials) == TRIES or time.monotonic() > until_s
        observer.note(f"{_name(spec.topology)} at {_trial_text(trial)}{'' if final else '; trying again'}")
        if final:
            return trials


def _try(spec: RunSpec, engine: Engine) -> RateTrial:
    rate_mbps = spec.link.rate_mbps
    engine.check(spec)
    try:
        result = engine.run(spec, Silent(), UNKEPT)
    except RunError as error:  # At extreme load flows never connect, or their processes die.
        return RateTrial(rate_mbps, str(error))
    metrics = result.metrics
    busy_pct = metrics["cpu_busy_pct"]
    late_us = metrics.get("late_p99_us", math.nan)
    return RateTrial(
        rate_mbps, wrong(result), busy_pct, late_us, Utilisation(metrics["packet_hops_per_s"], busy_pct)
    )


def wrong(result: RunResult) -> str:
    """Return why the trial's rate is too high for the machine: its verdict or its CPU load; else empty."""
    doubts = () if result.status is Status.OK else result.reasons
    counted = [reason for reason in doubts if reason.kind not in OF_A_SHORT_TRIAL | OF_ANY_RATE]
    if counted:
        return texts(counted)
    busy_pct = result.metrics["cpu_busy_pct"]
    if busy_pct > FIT_PCT:
        return f"{busy_pct:.1f} % busy; the limit is {FIT_PCT:.0f} %"
    return ""


def found(topology: TopologySpec, best: RateTrial, trials: Sequence[RateTrial]) -> str:
    """Return the result of a calibration in one line: the rate, its load, and why no higher rate."""
    above = [trial for trial in trials if trial.rate_mbps > best.rate_mbps]
    highest = "the highest this machine sustains now" if above else "sustained; higher rates were not tried"
    text = f"link rate at {_name(topology)}: {best.rate_mbps:g} Mb/s: {highest} ({_load(best)}"
    if above:
        refused = min(reversed(above), key=lambda trial: trial.rate_mbps)
        text += f"; {refused.rate_mbps:g} Mb/s is too high: {refused.wrong}"
    return f"{text})"


def _too_slow(topology: TopologySpec, last: RateTrial) -> str:
    k = topology.number("k")
    smaller = f"a smaller tree (--k {max(4, k // 4 * 2)}), " if k > 4 else ""
    return (
        f"this machine does not sustain {_name(topology)} at {last.rate_mbps:g} Mb/s now: {last.wrong}. On "
        "slower links bursts and queues last for seconds and dominate the measurement. Choose virtual "
        "time (the same command with --engine linux, or with --engine simulator), "
        f"{smaller}or a machine with more CPUs; or give --rate MBPS and accept suspect points"
    )


def _trial_text(trial: RateTrial) -> str:
    """Return `10 Mb/s: 41 % busy, ...: sustained`."""
    load = "" if math.isnan(trial.busy_pct) else f"{_load(trial)}: "
    outcome = f"too high: {trial.wrong}" if trial.wrong else "sustained"
    return f"{trial.rate_mbps:g} Mb/s: {load}{outcome}"


def _load(trial: RateTrial) -> str:
    """Return how busy the machine was, and lateness beside the drain time of a full queue."""
    busy = f"{trial.busy_pct:.0f} % busy"
    if math.isnan(trial.late_p99_us):
        return busy
    full_ms, late_ms = queue_us(LinkSpec(trial.rate_mbps)) / 1000, trial.late_p99_us / 1000
    return f"{busy}, 99 % of frames less than {late_ms:.2g} ms late; a full queue drains in {full_ms:.0f} ms"


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
    size = ", ".join(topos.size_words(topology.kind, topology.params))
    return size if topology.kind == "fat_tree" else f"{topology.kind} {size}"


_VERSION = 3
MAX_BYTES = 1 << 24


@dataclass(frozen=True)
class Calibration:
    """One calibration: the rate, the loads of its trials, the time and the noise.

    `highest_mbps` is the bound of the search; infinite without a bound.
    """

    topology: TopologySpec
    rate_mbps: float
    measured_s: float
    """Seconds since the Unix epoch."""
    noise: MachineNoise
    trials: tuple[Utilisation, ...]
    highest_mbps: float = math.inf

    def rate_up_to(self, highest_mbps: float) -> float | None:
        """Return the rate that a search bounded by `highest_mbps` would choose; None if it is unknown."""
        if self.rate_mbps >= self.highest_mbps and highest_mbps > self.highest_mbps:
            return None
        return min(self.rate_mbps, highest_mbps)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; `from_json` is the inverse."""
        return {
            "rate_mbps": self.rate_mbps,
            "topology": [self.topology.kind, dict(self.topology.params)],
            "measured_s": self.measured_s,
            "noise": self.noise.to_json(),
            "trials": [asdict(trial) for trial in self.trials],
            "highest_mbps": self.highest_mbps if math.isfinite(self.highest_mbps) else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        """Read a stored entry. Raises KeyError, TypeError or ValueError for a damaged one."""
        kind, params = data["topology"]
        trials = [Utilisation(float(t["hops_per_s"]), float(t["busy_pct"])) for t in data["trials"]]
        highest = data["highest_mbps"]
        entry = cls(
            TopologySpec(kind, params),
            float(data["rate_mbps"]),
            float(data["measured_s"]),
            MachineNoise.from_json(data["noise"]),
            tuple(trials),
            math.inf if highest is None else float(highest),
        )
        numbers = [entry.rate_mbps, entry.measured_s, entry.highest_mbps]
        numbers += [number for trial in trials for number in (trial.hops_per_s, trial.busy_pct)]
        if not trials or not all(number > 0 for number in numbers):
            raise ValueError("reading a calibration: it lacks trials, or a number is not above 0")
        return entry


def entries() -> list[Calibration]:
    """Return the valid entries that were measured on this machine and kernel."""
    found = []
    for key, data in _read().items():
        try:
            entry = Calibration.from_json(data)
            if key == _key(entry):
                found.append(entry)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError, UsageError):
            continue  # Damaged or from an earlier version: calibrate again.
    return found


def remember(entry: Calibration) -> None:
    """Add the entry, or replace the one of the same topology and bound. Two runs at once lose none.

    Raises StoreError, and UsageError if root may not work there.
    """
    file = path()
    check_private(f"calibrated rates in {file}", file)
    with files.storing(f"creating {file.parent}"):
        file.parent.mkdir(parents=True, exist_ok=True)
    files.update_file(file, lambda: json.dumps({**_read(), _key(entry): entry.to_json()}, indent=1).encode())


def path() -> Path:
    """Return the path of the file, which may not exist."""
    chosen = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/"), ".cache")
    return Path(chosen, "refabric", "calibration.json")


def _key(entry: Calibration) -> str:
    # Omit memory: the kernel's MemTotal varies slightly from boot to boot.
    here = {name: value for name, value in machine().items() if name not in {"python", "memory_mb"}}
    bound = [entry.highest_mbps] if math.isfinite(entry.highest_mbps) else []
    topology = entry.topology
    text = json.dumps([_VERSION, here, topology.kind, dict(topology.params), *bound], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read() -> Mapping[str, Any]:
    try:
        data = stored_json.loads(files.read_bytes(path(), MAX_BYTES))
    except (OSError, ValueError):
        return {}  # Absent, unreadable or damaged: calibrate again.
    return data if isinstance(data, dict) else {}


def capacity() -> Capacity:
    """Return the measured capacity of this machine and kernel; starts nothing."""
    return Capacity(measured(), len(os.sched_getaffinity(0)))
