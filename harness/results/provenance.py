"""The provenance of points as a flat list of facts to compare: kernel, CPU, tools, sysctls, revision. Pure.

Facts describe machine and software. Measurements of a run itself (packet counters, stalled attempts) differ
between any two runs and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.results.store import StoredPoint

COUNTED = ("counters", "kernel_counters", "path_manager_errors", "stalled_attempts")
"""Entries of the provenance that are measurements of the run itself."""
NOT_RECORDED = "not recorded"
_NAMES = {
    "kernel": "kernel",
    "architecture": "architecture",
    "distribution": "distribution",
    "cpu": "CPU",
    "cpus": "CPUs",
    "memory_mb": "memory (MB)",
    "python": "Python",
    "revision": "refabric revision",
    "path_manager": "MPTCP path manager",
    "rate_choice": "link rate chosen by",
}
_DIRTY = "+"


@dataclass(frozen=True)
class Fact:
    """The name of one fact about a machine: `section` and `key` of the provenance."""

    section: str
    key: str

    @property
    def name(self) -> str:
        """Return the name to show: `kernel`, `iperf3`, `net.ipv4.tcp_sack`."""
        if self.section in {"", "tools", "sysctls"}:
            return _NAMES.get(self.key, self.key)
        return f"{self.section} {self.key}"


def facts(provenance: Mapping[str, Any]) -> dict[Fact, str]:
    """Return all facts about machine and software with their values as text, in the order of the
    provenance."""
    found: dict[Fact, str] = {}
    for key, value in provenance.items():
        if key in COUNTED:
            continue
        if isinstance(value, Mapping):
            # In old results "kernel" holds counters; these results do not name the kernel.
            if key != "kernel":
                found |= {Fact(key, str(name)): _text(each) for name, each in value.items()}
        else:
            found[Fact("", key)] = _text(value)
    return found


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_text(each) for each in value) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def values(points: Iterable[StoredPoint]) -> dict[Fact, tuple[str, ...]]:
    """Return every fact with its distinct values over the points, in order of appearance.

    If some points lack a fact, `NOT_RECORDED` is among its values.
    """
    each = [facts(point.provenance) for point in points]
    known = dict.fromkeys(fact for one in each for fact in one)
    return {fact: tuple(dict.fromkeys(one.get(fact, NOT_RECORDED) for one in each)) for fact in known}


@dataclass(frozen=True)
class Contrast:
    """A fact that differs between two sides; () for a side without it."""

    fact: Fact
    a: tuple[str, ...]
    b: tuple[str, ...]


def contrasts(a: Iterable[StoredPoint], b: Iterable[StoredPoint]) -> list[Contrast]:
    """Return the facts whose sets of values differ between two sets of points, in order of appearance."""
    of_a, of_b = values(a), values(b)
    both = dict.fromkeys((*of_a, *of_b))
    found = (Contrast(fact, of_a.get(fact, ()), of_b.get(fact, ())) for fact in both)
    return [contrast for contrast in found if set(contrast.a) != set(contrast.b)]


def is_dirty(revision: str) -> bool:
    """Return whether the checkout had uncommitted changes when the point was made."""
    return revision.endswith(_DIRTY)
