"""The highest link rate this machine carries for a topology, measured by doing, remembered per machine.

A rate is carried when one_to_one with 8 subflows, the most demanding point of the figure, leaves the
machine at most 70 % busy, 1 frame in 100 less than half a packet time late, and nothing lost. What each
trial carried, and how busy that kept the machine, is remembered too, because it says what else will fit
(engines/capacity.py).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import topos
from engines.capacity import FIT_PCT, Measured, demand
from engines.emulation.engine import UNKEPT, MininetEngine
from engines.engine import Engine, Observer, Silent
from engines.provenance import machine
from engines.result import RunResult
from engines.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec
from fabric.errors import HostUnfitError, RunError
from fabric.plan import FRAME_BITS

RATES_MBPS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
SUBFLOWS = 8
BUSY_PCT = FIT_PCT
WARMUP_S, SECONDS = 4.0, 5.0
_GUESS_MBPS_HOSTS = 640.0
"""Where the search starts: 5 Mb/s at 128 hosts. Only the number of trials depends on it."""
_VERSION = 2


def cached(topology: TopologySpec) -> float | None:
    """The rate (Mb/s) measured earlier on this machine and kernel, None when there is none."""
    return next((rate for known, rate in rates() if known == topology), None)


def rates() -> list[tuple[TopologySpec, float]]:
    """Every topology measured on this machine and kernel, and the rate (Mb/s) carried."""
    return [(topology, float(entry["rate_mbps"])) for topology, entry in _entries()]


def measured() -> tuple[Measured, ...]:
    """What trials on this machine and kernel carried, and how busy that kept it.

    Of rates noted before trials were, as much is known: what their points ask for, at 70 % at most.
    """
    found = []
    for topology, entry in _entries():
        trials = entry.get("trials")
        if trials is None:
            asked = demand(_trial(topology, float(entry["rate_mbps"])))
            found.append(Measured(asked.hops_per_s, BUSY_PCT))
        else:
            found += [Measured(float(trial["hops_per_s"]), float(trial["busy_pct"])) for trial in trials]
    return tuple(found)


def _entries() -> list[tuple[TopologySpec, Mapping[str, Any]]]:
    """The cache's entries that were measured here and are whole."""
    found = []
    for key, entry in _read().items():
        try:
            kind, params = entry["topology"]
            topology = TopologySpec(kind, params)
            trials = entry.get("trials") or ()
            numbers = [entry["rate_mbps"], *(t[name] for t in trials for name in ("hops_per_s", "busy_pct"))]
            if key == _key(topology) and all(float(number) > 0 for number in numbers):
                found.append((topology, entry))
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # damaged: measured again
    return found


def calibrate(topology: TopologySpec, observer: Observer, engine: Engine | None = None) -> float:
    """Measure the rate (Mb/s) and remember it: a few trials of about ten seconds.

    Raises HostUnfitError when not even 1 Mb/s is carried, or the machine cannot emulate at all.
    """
    engine = engine or MininetEngine()
    hosts = len(topos.build(topology.kind, topology.params).hosts)
    guess = max((i for i, rate in enumerate(RATES_MBPS) if rate <= _GUESS_MBPS_HOSTS / hosts), default=0)
    tried: dict[int, bool] = {}
    seen: list[Measured] = []
    step = guess
    while 0 <= step < len(RATES_MBPS) and step not in tried:
        tried[step] = _carries(topology, RATES_MBPS[step], observer, engine, seen)
        step += 1 if tried[step] else -1
    carried = [i for i, good in tried.items() if good]
    if not carried:
        raise HostUnfitError(
            f"this machine does not carry {topology.kind} {dict(topology.params)} at {RATES_MBPS[0]:g} Mb/s: "
            "choose a smaller topology, or give --rate MBPS and expect suspect points"
        )
    rate = RATES_MBPS[max(carried)]
    try:
        _remember(topology, rate, seen)
    except OSError as error:
        observer.note(
            f"{rate:g} Mb/s could not be noted in {_file()} ({error.strerror}): measured anew next time"
        )
    return rate


def _trial(topology: TopologySpec, rate_mbps: float) -> RunSpec:
    return RunSpec(
        link=LinkSpec(rate_mbps),
        topology=topology,
        transport=TransportSpec(SUBFLOWS),
        warmup_s=WARMUP_S,
        seconds=SECONDS,
    )


def _carries(
    topology: TopologySpec, rate_mbps: float, observer: Observer, engine: Engine, seen: list[Measured]
) -> bool:
    """Whether a trial at this rate is carried; what it carried is added to `seen`."""
    spec = _trial(topology, rate_mbps)
    engine.check(spec)
    try:
        result = engine.run(spec, _Quiet(observer), UNKEPT)
    except RunError as error:  # flows that never connect, or die: what too much looks like at its worst
        observer.note(f"k={topology.k} at {rate_mbps:g} Mb/s: too much: {error}")
        return False
    good = carried(rate_mbps, result)
    busy, late = result.metrics["cpu_busy_pct"], result.metrics["late_p99_us"]
    seen.append(Measured(result.metrics["packet_hops_per_s"], busy))
    verdict = "carried" if good else "too much"
    observer.note(
        f"k={topology.k} at {rate_mbps:g} Mb/s: {busy:.0f} % busy, p99 {late:.0f} us late: {verdict}"
    )
    return good


def carried(rate_mbps: float, result: RunResult) -> bool:
    """The rule of the module's first paragraph."""
    lost = any(reason.startswith("CPU:") for reason in result.reasons)
    in_time = result.metrics["late_p99_us"] < FRAME_BITS / rate_mbps / 2
    return not lost and in_time and result.metrics["cpu_busy_pct"] <= BUSY_PCT


class _Quiet(Silent):
    """Passes notes on; the phases of a trial are nobody's progress."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def note(self, text: str) -> None:
        self._observer.note(text)


def _key(topology: TopologySpec) -> str:
    # Memory is left out: what the kernel calls MemTotal moves a little from boot to boot.
    here = {name: value for name, value in machine().items() if name not in {"python", "memory_mb"}}
    text = json.dumps([_VERSION, here, topology.kind, dict(topology.params)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _file() -> Path:
    """Of the user behind sudo, so that `plan` without root finds what root measured."""
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "refabric" / "calibration.json"


def _make(folder: Path) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _give_back(path)


def _home() -> Path:
    user = os.environ.get("SUDO_USER")
    return Path(f"~{user}").expanduser() if user and os.geteuid() == 0 else Path.home()


def _give_back(path: Path) -> None:
    if os.geteuid() == 0 and "SUDO_UID" in os.environ:
        os.chown(path, int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", "-1")))


def _read() -> Mapping[str, Any]:
    try:
        data = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}  # never measured, not ours to read, or damaged: measured again
    return data if isinstance(data, dict) else {}


def _remember(topology: TopologySpec, rate_mbps: float, seen: Sequence[Measured]) -> None:
    entry = {
        "rate_mbps": rate_mbps,
        "topology": [topology.kind, dict(topology.params)],
        "trials": [dataclasses.asdict(trial) for trial in seen],
    }
    path = _file()
    _make(path.parent)
    aside = path.with_suffix(".new")  # one name: what a kill leaves, the next measurement replaces
    aside.unlink(missing_ok=True)
    aside.write_text(json.dumps({**_read(), _key(topology): entry}, indent=1))
    _give_back(aside)
    aside.replace(path)
