"""The provenance of points as facts to compare and to report: kernel, CPU, tools, sysctls, revision. Pure.

Facts describe machine and software. Measurements of a run itself (packet counters, stalled attempts) differ
between any two runs: they are no facts, and the report sums them up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.plausibility import unsteady
from common.text import counted
from harness.labels import point_label
from harness.results.point_results import PointResult

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


def values(points: Iterable[PointResult]) -> dict[Fact, tuple[str, ...]]:
    """Return every fact with its distinct values over the points, in order of appearance.

    If some points lack a fact, `NOT_RECORDED` is among its values.
    """
    each = [facts(point.provenance) for point in points]
    known = dict.fromkeys(fact for one in each for fact in one)
    return {fact: tuple(dict.fromkeys(one.get(fact, NOT_RECORDED) for one in each)) for fact in known}


def contrasts(
    a: Iterable[PointResult], b: Iterable[PointResult]
) -> dict[Fact, tuple[Sequence[str], Sequence[str]]]:
    """Return the facts whose sets of values differ between two sets of points, in order of appearance, with
    the values of both; () for a side without the fact."""
    of_a, of_b = values(a), values(b)
    both = {fact: (of_a.get(fact, ()), of_b.get(fact, ())) for fact in (*of_a, *of_b)}
    return {fact: (ours, theirs) for fact, (ours, theirs) in both.items() if set(ours) != set(theirs)}


def is_dirty(revision: str) -> bool:
    """Return whether the checkout had uncommitted changes when the point was made."""
    return revision.endswith(_DIRTY)


_TITLES = {"": "Machine and software", "tools": "Tools", "sysctls": "Kernel settings (sysctl)"}
_SHOWN_EACH = 6


Rows = list[tuple[str, str]]
"""Names and values."""


@dataclass(frozen=True)
class Provenance:
    """The provenance of a report's points.

    `notes` come first on the page. `sections` are facts by their titles. `varying` are facts that differ
    between points, each with its values and their points. `counted` are counters, summed over all points.
    """

    notes: tuple[str, ...]
    sections: dict[str, Rows]
    varying: dict[str, Rows]
    counted: dict[str, Rows]


def collect(points: Sequence[PointResult]) -> Provenance:
    """Return facts and counters over all points."""
    known = values(points)
    return Provenance(
        tuple(_notes(points, known)),
        _sections(known),
        {fact.name: _points_by_value(points, fact) for fact, found in known.items() if len(found) > 1},
        _counted(points),
    )


def _notes(points: Sequence[PointResult], values: Mapping[Fact, Sequence[str]]) -> list[str]:
    notes = []
    revisions = values.get(Fact("", "revision"), ())
    dirty = [revision for revision in revisions if is_dirty(revision)]
    if dirty:
        notes.append(f"Revision {', '.join(dirty)}: the + marks a checkout with uncommitted changes.")
    if Fact("", "kernel") not in values:
        notes.append("The kernel release was not recorded with these points.")
    elif NOT_RECORDED in values[Fact("", "kernel")]:
        notes.append("The kernel release was not recorded with some of the points.")
    stalled = [judged for judged in points if judged.provenance.get("stalled_attempts")]
    if stalled:
        tries = sum(len(judged.provenance["stalled_attempts"]) for judged in stalled)
        was = "was" if tries == 1 else "were"
        notes.append(
            f"{counted(tries, 'attempt')} at {counted(len(stalled), 'point')} {was} stopped and repeated "
            f"because connections stalled ({_named(stalled)})."
        )
    notes += [f"{point_label(j.spec)}: {text}." for j in points if (text := unsteady(j.metrics))]
    errors = [judged for judged in points if judged.provenance.get("path_manager_errors")]
    if errors:
        first = errors[0].provenance["path_manager_errors"][0]
        where = f"{counted(len(errors), 'point')} ({_named(errors)})"
        notes.append(f"The MPTCP path manager reported errors at {where}, the first: {first}.")
    return notes


def _named(points: Sequence[PointResult]) -> str:
    names = [point_label(judged.spec) for judged in points[:_SHOWN_EACH]]
    more = len(points) - len(names)
    return "; ".join(names) + (f"; and {more} more" if more else "")


def _sections(values: Mapping[Fact, Sequence[str]]) -> dict[str, Rows]:
    sections: dict[str, Rows] = {}
    for fact, found in values.items():
        title = _TITLES.get(fact.section, fact.section.replace("_", " ").capitalize())
        row = fact.name.removeprefix(f"{fact.section} "), " / ".join(found)
        sections.setdefault(title, []).append(row)
    return sections


def _points_by_value(points: Sequence[PointResult], fact: Fact) -> Rows:
    """Return each value of a fact with the points that have it."""
    having: dict[str, list[PointResult]] = {}
    for judged in points:
        value = facts(judged.provenance).get(fact, NOT_RECORDED)
        having.setdefault(value, []).append(judged)
    return [(value, f"{counted(len(found), 'point')}: {_named(found)}") for value, found in having.items()]


def _counted(points: Sequence[PointResult]) -> dict[str, Rows]:
    core, kernel = Counter[str](), Counter[str]()
    for judged in points:
        core.update(_difference(judged.provenance.get("counters")))
        kernel.update(_numbers(judged.provenance.get("kernel_counters")))
    return {
        title: [(name, f"{value:,.0f}") for name, value in sorted(found.items()) if value]
        for title, found in (("fabric core, measured window", core), ("kernels of the hosts", kernel))
        if any(found.values())
    }


_COUNTED_BY_CORE = (
    "injected", "delivered", "dropped", "lost", "hops", "ring_drops", "send_refused", "no_memory",
    "no_such_host", "not_ipv4", "vlan_tagged", "oversized",
)  # fmt: skip


def _difference(counters: Any) -> dict[str, int]:
    """Return the core's counters over the measured window."""
    if not isinstance(counters, Mapping):
        return {}
    before, after = (_numbers(counters.get(when)) for when in ("before", "after"))
    return {name: after[name] - before.get(name, 0) for name in _COUNTED_BY_CORE if name in after}


def _numbers(counters: Any) -> dict[str, int]:
    if not isinstance(counters, Mapping):
        return {}
    return {str(name): int(value) for name, value in counters.items() if isinstance(value, int | float)}
