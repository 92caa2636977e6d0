"""Where points come from, as flat facts to compare: kernel, CPU, tools, sysctls, revision. Pure.

Facts are what provenance says of machine and software; what a run counted or met (packet counters,
stalled attempts) differs between any two runs and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.results.store import StoredPoint

COUNTED = ("counters", "kernel_counters", "path_manager_errors", "stalled_attempts")
"""Entries of provenance that are measurements of the run itself."""
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
    """One thing known of a machine: `section` and `key` of the provenance, and its value as text."""

    section: str
    key: str

    @property
    def name(self) -> str:
        """In a reader's words: `kernel`, `iperf3`, `net.ipv4.tcp_sack`."""
        if self.section in {"", "tools", "sysctls"}:
            return _NAMES.get(self.key, self.key)
        return f"{self.section} {self.key}"


def facts(provenance: Mapping[str, Any]) -> dict[Fact, str]:
    """Everything said about machine and software, one level deep, in provenance's own order."""
    found: dict[Fact, str] = {}
    for key, value in provenance.items():
        if key in COUNTED:
            continue
        if isinstance(value, Mapping):
            # Counters once took the kernel's name: then nothing is known of the kernel.
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
    """Every fact and its distinct values over the points, in order of appearance.

    A fact some points have and others lack has `NOT_RECORDED` among its values.
    """
    each = [facts(point.provenance) for point in points]
    known = dict.fromkeys(fact for one in each for fact in one)
    return {fact: tuple(dict.fromkeys(one.get(fact, NOT_RECORDED) for one in each)) for fact in known}


@dataclass(frozen=True)
class Contrast:
    """A fact that is not the same on two sides; () where a side knows nothing of it."""

    fact: Fact
    a: tuple[str, ...]
    b: tuple[str, ...]


def contrasts(a: Iterable[StoredPoint], b: Iterable[StoredPoint]) -> list[Contrast]:
    """Facts whose sets of values differ between two sets of points, in order of appearance."""
    of_a, of_b = values(a), values(b)
    both = dict.fromkeys((*of_a, *of_b))
    found = (Contrast(fact, of_a.get(fact, ()), of_b.get(fact, ())) for fact in both)
    return [contrast for contrast in found if set(contrast.a) != set(contrast.b)]


def is_dirty(revision: str) -> bool:
    """Whether files differed from the revision's when the point was made."""
    return revision.endswith(_DIRTY)
