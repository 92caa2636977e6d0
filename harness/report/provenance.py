"""The provenance part of a report: machine, kernel, tools, sysctls, revision, counters. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.plausibility import unsteady
from harness.report.points import point_label
from harness.results import provenance
from harness.results.provenance import NOT_RECORDED, Fact
from harness.results.summary import Judged

_TITLES = {"": "Machine and software", "tools": "Tools", "sysctls": "Kernel settings (sysctl)"}
_SHOWN_EACH = 6


@dataclass(frozen=True)
class Section:
    """A titled list of names and values."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Provenance:
    """The provenance of a report's points.

    `notes` come first on the page. `varying` are facts that differ between points, each with its values and
    their points. `counted` are counters, summed over all points.
    """

    notes: tuple[str, ...]
    sections: tuple[Section, ...]
    varying: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    counted: tuple[Section, ...]


def collect(points: Sequence[Judged]) -> Provenance:
    """Return facts and counters over all points."""
    values = provenance.values(judged.point for judged in points)
    return Provenance(
        tuple(_notes(points, values)),
        tuple(_sections(values)),
        tuple(
            (fact.name, _points_by_value(points, fact)) for fact, found in values.items() if len(found) > 1
        ),
        tuple(_counted(points)),
    )


def _notes(points: Sequence[Judged], values: Mapping[Fact, Sequence[str]]) -> list[str]:
    notes = []
    revisions = values.get(Fact("", "revision"), ())
    dirty = [revision for revision in revisions if provenance.is_dirty(revision)]
    if dirty:
        notes.append(f"Revision {', '.join(dirty)}: the + marks a checkout with uncommitted changes.")
    if Fact("", "kernel") not in values:
        notes.append("The kernel release was not recorded with these points.")
    elif NOT_RECORDED in values[Fact("", "kernel")]:
        notes.append("The kernel release was not recorded with some of the points.")
    stalled = [judged for judged in points if judged.point.provenance.get("stalled_attempts")]
    if stalled:
        tries = sum(len(judged.point.provenance["stalled_attempts"]) for judged in stalled)
        was = "was" if tries == 1 else "were"
        notes.append(
            f"{_count(tries, 'attempt')} at {_count(len(stalled), 'point')} {was} stopped and repeated "
            f"because connections stalled ({_named(stalled)})."
        )
    notes += [f"{point_label(j.spec)}: {text}." for j in points if (text := unsteady(j.point.metrics))]
    errors = [judged for judged in points if judged.point.provenance.get("path_manager_errors")]
    if errors:
        first = errors[0].point.provenance["path_manager_errors"][0]
        where = f"{_count(len(errors), 'point')} ({_named(errors)})"
        notes.append(f"The MPTCP path manager reported errors at {where}, the first: {first}.")
    return notes


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _named(points: Sequence[Judged]) -> str:
    names = [point_label(judged.spec) for judged in points[:_SHOWN_EACH]]
    more = len(points) - len(names)
    return "; ".join(names) + (f"; and {more} more" if more else "")


def _sections(values: Mapping[Fact, Sequence[str]]) -> list[Section]:
    names = dict.fromkeys(fact.section for fact in values)
    return [
        Section(
            _TITLES.get(name, name.replace("_", " ").capitalize()),
            tuple(
                (fact.name.removeprefix(f"{name} "), " / ".join(found))
                for fact, found in values.items()
                if fact.section == name
            ),
        )
        for name in names
    ]


def _points_by_value(points: Sequence[Judged], fact: Fact) -> tuple[tuple[str, str], ...]:
    """Return each value of a fact with the points that have it."""
    having: dict[str, list[Judged]] = {}
    for judged in points:
        value = provenance.facts(judged.point.provenance).get(fact, NOT_RECORDED)
        having.setdefault(value, []).append(judged)
    return tuple(
        (value, f"{_count(len(found), 'point')}: {_named(found)}") for value, found in having.items()
    )


def _counted(points: Sequence[Judged]) -> list[Section]:
    core, kernel = Counter[str](), Counter[str]()
    for judged in points:
        core.update(_difference(judged.point.provenance.get("counters")))
        kernel.update(_numbers(judged.point.provenance.get("kernel_counters")))
    return [
        Section(title, tuple((name, f"{value:,.0f}") for name, value in sorted(found.items()) if value))
        for title, found in (("fabric core, measured window", core), ("kernels of the hosts", kernel))
        if any(found.values())
    ]


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
