"""Names of settings: file names of charts, labels that tell settings apart, and descriptions in words."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence

import topos
from engines.registry import SIMULATED_HOSTS
from model.spec import TCP, RunSpec
from model.words import unusual

MAX_STEM = 160
"""Characters of a chart's file name without its ending; file systems take 255 bytes."""
_NAMED_APART = frozenset({"link.ecn_pkts"})
"""Fields with words for which file names, names of settings and captions have a part of their own."""
PartOf = Callable[[RunSpec], str]


def variant(spec: RunSpec) -> str:
    """Describe what else sets a setting apart: `10 s warm-up, ecmp routing, 1 % random loss`."""
    return ", ".join([f"{spec.warmup_s:g} s warm-up", *special(spec)])


def special(spec: RunSpec) -> list[str]:
    """Describe what is unusual in a setting and has no place of its own in names and captions:
    `["ecmp routing", "1 % random loss"]`."""
    # The spec of a panel has one subflow, whatever its points have; words on further subflows need several.
    of = spec
    if spec.transport.protocol == TCP:
        several = dataclasses.replace(spec.transport, subflows=max(2, spec.transport.subflows))
        of = dataclasses.replace(spec, transport=several)
    return unusual(of, simulated=spec.engine in SIMULATED_HOSTS, without=_NAMED_APART)


def shape(spec: RunSpec) -> tuple[tuple[str, int], ...]:
    """Return the topology parameters, size aside, that are not at their defaults."""
    return topos.shape(spec.topology.kind, spec.topology.params)


def setting_order(spec: RunSpec) -> tuple[object, ...]:
    """Return a sort key of settings for readers."""
    return (
        spec.topology.kind, spec.topology.k, spec.workload.matrix, spec.engine, spec.dataplane,
        spec.transport.cc, spec.link.rate_mbps, spec.link.queue_pkts, spec.link.ecn_pkts, spec.seconds,
        variant(spec), shape(spec),
    )  # fmt: skip


def place(spec: RunSpec) -> str:
    """Return the first part of a chart's file name: `fat_tree-k8-one_to_one`."""
    named = spec.topology.params.get("name", f"k{spec.topology.k}")
    return f"{spec.topology.kind}-{named}-{spec.workload.matrix}"


def file_stems(
    chart: str, of: Sequence[RunSpec], named: PartOf = place, overrides: Sequence[Sequence[str]] = ()
) -> list[str]:
    """Return a file name for each setting: `throughput-fat_tree-k8-one_to_one`, and what sets it apart.

    `overrides` are the settings that each has instead of its figure's. Names always have them, so that the
    plain name is that of the figure's own settings, whatever else was run.
    """
    unlike = [_in_file_name(", ".join(words)) for words in overrides] or [""] * len(of)
    groups: dict[str, list[int]] = {}
    for number, words in enumerate(unlike):
        groups.setdefault(words, []).append(number)
    stems = [""] * len(of)
    for words, numbers in groups.items():
        alike = [of[number] for number in numbers]
        for number, spec, differing in zip(numbers, alike, _differing_parts(alike), strict=True):
            stems[number] = "-".join(filter(None, [chart, named(spec), words, *differing]))
    return list(map(_storable, _told_apart(stems, of)))


def _differing_parts(of: Sequence[RunSpec]) -> list[list[str]]:
    parts: tuple[PartOf, ...] = (
        lambda s: "-".join(f"{name}{value}" for name, value in shape(s)),
        lambda s: s.engine,
        lambda s: s.dataplane,
        lambda s: s.transport.cc,
        lambda s: f"{s.link.rate_mbps:g}mbps",
        lambda s: f"{s.link.queue_pkts}pkts",
        lambda s: f"ecn{s.link.ecn_pkts}" if s.link.ecn_pkts else "",
        lambda s: f"{s.seconds:g}s",
        lambda s: _in_file_name(variant(s)),
    )
    return _differing(of, parts)


def _in_file_name(words: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in words).split())


def _told_apart(stems: Sequence[str], of: Sequence[RunSpec]) -> list[str]:
    """Return the stems; where those of different settings are equal, with a digest of the setting: one chart
    must not overwrite another."""
    settings: dict[str, set[str]] = {}
    for stem, spec in zip(stems, of, strict=True):
        settings.setdefault(stem, set()).add(spec.content_hash())
    return [
        f"{stem}-{spec.content_hash()}" if len(settings[stem]) > 1 else stem
        for stem, spec in zip(stems, of, strict=True)
    ]


def _storable(stem: str) -> str:
    """Shorten a stem that is too long for a file system; the digest keeps it unique."""
    if len(stem) <= MAX_STEM:
        return stem
    return f"{stem[: MAX_STEM - 9]}-{hashlib.sha256(stem.encode()).hexdigest()[:8]}"


def setting_names(of: Sequence[RunSpec]) -> list[str]:
    """Name each setting beside the others: `k=8`, and as much else as sets it apart."""
    parts: tuple[PartOf, ...] = (
        lambda s: s.topology.kind.replace("_", " "),
        lambda s: ", ".join(topos.size_words(s.topology.kind, dict(shape(s)))),
        lambda s: s.workload.matrix.replace("_", " "),
        lambda s: f"{s.link.rate_mbps:g} Mb/s",
        lambda s: f"queue {s.link.queue_pkts}" if s.link.queue_pkts else "no queue limit",
        lambda s: f"ECN from {s.link.ecn_pkts}" if s.link.ecn_pkts else "no ECN",
        lambda s: s.transport.cc,
        lambda s: s.engine,
        lambda s: s.dataplane,
        lambda s: f"{s.seconds:g} s",
        variant,
    )
    names = [f"k={s.topology.k}" for s in of]
    for part in parts:
        longer = [f"{name}, {part(s)}" for name, s in zip(names, of, strict=True)]
        names = longer if len(set(longer)) > len(set(names)) else names
    return names


def _differing(of: Sequence[RunSpec], parts: Iterable[PartOf]) -> list[list[str]]:
    """Return those parts of each setting in which the settings differ."""
    telling = [part for part in parts if len({part(spec) for spec in of}) > 1]
    return [[text for part in telling if (text := part(spec))] for spec in of]
