"""A comparison as tables (at most 110 columns wide) and as JSON (one object per line)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engines.registry import SIMULATED_HOSTS
from harness import labels
from harness.baseline import MATRIX
from harness.compare.compare import (
    Comparison,
    Condition,
    ConditionPair,
    Difference,
    Disagreement,
    DisagreementKind,
    Fields,
    How,
    PairDifference,
    SeedValues,
    Side,
    Value,
    reproducible,
)
from harness.labels import network, setting_title
from harness.metrics.metrics import Metric
from harness.results.provenance import Fact
from harness.streams import console_for, write_json

_ORIGIN_SHOWN = 400
MAX_DISAGREEMENTS = 20
_UNITS = {
    "rate_mbps": ("link rate", "Mb/s"),
    "queue_pkts": ("queue", "packets"),
    "queue_bytes": ("queue", "bytes"),
    "nic_queue_pkts": ("hosts' own queue", "packets"),
    "delay_us": ("delay of a link", "us"),
    "warmup_s": ("warm-up", "s"),
    "seconds": ("measured", "s"),
    "cc": ("congestion control", ""),
    "topology": ("topology", ""),
    "topology k": ("k", ""),
    "subflows": ("subflows", ""),
}
SUSPECT_MARK = "?"
TOPOLOGY = "topology"
"""The prefix of the names of fields that describe the network."""


def field_name(name: str) -> str:
    """Return the name of a field in words."""
    return _UNITS.get(name, (name, ""))[0]


def field_text(name: str, value: Value | None) -> str:
    """Return a field's value with its unit."""
    if value is None:
        return "-"
    if name == "queue_pkts" and value == 0:
        return "unbounded"
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    unit = _UNITS.get(name, ("", ""))[1]
    return f"{shown} {unit}" if unit and not isinstance(value, str) else shown


def show(stream: IO[str], comparison: Comparison, disagreements: Sequence[Disagreement]) -> None:
    """Print the whole comparison, most important first, and at the end in what the two sides disagree."""
    console = console_for(stream)
    _say(console, f"A: {_side(comparison.a)}")
    _say(console, f"B: {_side(comparison.b)}")
    for group in _groups(comparison.compared):
        console.print()
        _say(console, _title(group), style="bold")
        for line in _parameters(group):
            _say(console, line)
        console.print(_goodput(group))
        console.print(_others(group))
        for note in _notes(group):
            _say(console, note, style="yellow" if note.startswith(SUSPECT_MARK) else "")
    console.print()
    _show_baselines(console, comparison)
    _show_unmatched(console, comparison)
    _show_origin(console, comparison.provenance)
    _show_disagreements(console, comparison, disagreements)


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text), style=style, soft_wrap=True, highlight=False)


def _side(side: Side) -> str:
    seeds = len({point.spec.seed for point in side.measured})
    doubtful = sum(point.status != "ok" for point in side.measured)
    left = f", {doubtful} of them suspect or failed" if doubtful else ""
    return f"{side.path}: {len(side.measured)} points, {seeds} seed{'s' * (seeds != 1)}{left}"


def _groups(compared: Sequence[PairDifference]) -> list[list[PairDifference]]:
    """Group the pairs by table: those that differ only in subflows, or in algorithms that both sides have."""
    groups: dict[tuple[object, ...], list[PairDifference]] = {}
    for one in compared:
        named = {"subflows", *({"cc", "routing"} - set(one.pair.differing))}
        key = (_rest(one.pair.a.fields, named), _rest(one.pair.b.fields, named))
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _rest(fields: Fields, named: Collection[str]) -> tuple[tuple[str, Value], ...]:
    """The fields that a row's own name does not show."""
    return tuple(sorted((name, value) for name, value in fields.items() if name not in named))


def _title(group: Sequence[PairDifference]) -> str:
    """The fields that both sides have in common."""
    pair = group[0].pair
    named = ("workload", "rate_mbps", "queue_pkts", "cc", "routing", "traffic", "seconds", "warmup_s",
             "engine")  # fmt: skip
    by_rows = labels.mixed(side.spec for one in group for side in _sides(one))
    simulated = all(side.spec.engine in SIMULATED_HOSTS for side in (pair.a, pair.b))
    left_out = {
        *pair.differing,
        *(("cc", "routing") if by_rows else ()),
        *(("traffic",) if simulated else ()),
    }
    same = [name for name in named if name not in left_out and name in pair.a.fields]
    phrases = [_phrase(name, pair.a.fields[name]) for name in same if pair.a.fields[name] != MATRIX]
    return ", ".join([*_networks(pair), *phrases])


def _networks(pair: ConditionPair) -> list[str]:
    """The network of both sides, or the part that they have in common."""
    if not any(name.startswith(TOPOLOGY) for name in pair.differing):
        return [network(pair.a.spec.topology)]
    same = [name for name in pair.a.fields if name.startswith(TOPOLOGY) and name not in pair.differing]
    return [f"{name.removeprefix(TOPOLOGY).strip()} {pair.a.fields[name]}".strip() for name in same]


def _sides(one: PairDifference) -> tuple[Condition, Condition]:
    return one.pair.a, one.pair.b


def _phrase(name: str, value: Value) -> str:
    shown = field_text(name, value)
    forms = {
        "rate_mbps": f"{shown} links",
        "queue_pkts": "unbounded queues" if value == 0 else f"{value}-packet queues",
        "routing": f"{shown} routing",
        "traffic": f"{shown} traffic",
        "engine": f"{shown} engine",
        "seconds": f"{shown} measured",
        "warmup_s": f"{shown} warm-up",
    }
    return forms.get(name, shown)


def _parameters(group: Sequence[PairDifference]) -> list[str]:
    """The fields in which the sides differ: the same for the whole group, except for subflows."""
    pair = group[0].pair
    return [
        f"  {field_name(name)}: A {field_text(name, pair.a.fields.get(name))}, "
        f"B {field_text(name, pair.b.fields.get(name))}"
        for name in pair.differing
        if name != "subflows"
    ]


def row_names(group: Sequence[PairDifference]) -> list[str]:
    """Return `MPTCP 4`, or `TCP | MPTCP 8` if transports are compared; with algorithms if they differ within
    the table."""
    names = labels.names([side.spec for one in group for side in _sides(one)])
    return [" | ".join(dict.fromkeys(pair)) for pair in zip(names[::2], names[1::2], strict=True)]


def _goodput(group: Sequence[PairDifference]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("mean goodput", no_wrap=True)
    for head in ("A", "B", "B - A", "95 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("seeds", no_wrap=True)
    table.add_column("")
    for one, name in zip(group, row_names(group), strict=True):
        d = one.goodput
        table.add_row(
            name, _mean(d.a, one.metric), _mean(d.b, one.metric), _change(one), _interval(one),
            _seeds(d), conclusion(one),
        )  # fmt: skip
    return table


def _mean(sample: SeedValues, metric: Metric) -> Text:
    if sample.mean is None:
        return Text("-")
    mark = SUSPECT_MARK if sample.suspect else ""
    return Text(
        f"{metric.cell(sample.mean)} {metric.short_unit}{mark}", style="yellow" if sample.suspect else ""
    )


def _change(one: PairDifference) -> str:
    value = one.goodput.value
    return "-" if value is None else f"{value:+.{one.metric.decimals}f}"


def _interval(one: PairDifference) -> str:
    interval = one.goodput.interval
    if interval is None:
        return "-"
    digits = one.metric.decimals
    low, high = interval.value - interval.half, interval.value + interval.half
    return f"{low:+.{digits}f} .. {high:+.{digits}f}"


def _seeds(d: Difference) -> str:
    if d.how is How.PAIRED:
        return f"{d.pairs} pairs"
    return f"{len(d.a.by_seed)} | {len(d.b.by_seed)}"


def conclusion(one: PairDifference) -> str:
    """Return the conclusion from the difference in a few words, as far as the seeds support one."""
    d = one.goodput
    if d.how is How.NOTHING:
        return f"no number in {' and '.join(name for name, s in (('A', d.a), ('B', d.b)) if not s.by_seed)}"
    if _same_measurement(one.pair):
        return "the same measurement on both sides"
    if d.suspect:
        return "suspect: it shows the machine, not the stack"
    if d.interval is None:
        single = [name for name, s in (("A", d.a), ("B", d.b)) if len(s.by_seed) < 2]
        return "one seed: no uncertainty" + ("" if len(single) == 2 else f" (in {single[0]})")
    if d.interval.half == 0:
        return "no spread between seeds"
    return "a difference" if d.interval.excludes_zero else "no difference shown"


def _same_measurement(pair: ConditionPair) -> bool:
    """Whether one side is a copy of the other: every flow has exactly the same goodput."""

    def goodputs(side: Condition) -> list[list[float]]:
        return [[flow.goodput_mbps for flow in point.flows] for point in side.points]

    return not pair.differing and goodputs(pair.a) == goodputs(pair.b)


def _others(group: Sequence[PairDifference]) -> Table:
    """Return a table of A and B side by side for all other metrics with a value; suspect ones are marked."""
    known = {m for one in group for m, d in one.others if d.a.mean is not None or d.b.mean is not None}
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("A | B", no_wrap=True)
    for metric, _ in group[0].others:
        if metric not in known:
            continue
        table.add_column(f"{metric.head}\n{metric.short_unit}", justify="right", no_wrap=True)
    for one, name in zip(group, row_names(group), strict=True):
        cells = [
            f"{_short(d.a, metric)} | {_short(d.b, metric)}" for metric, d in one.others if metric in known
        ]
        table.add_row(name.replace(" | ", " |\n"), *cells)
    return table


def _short(sample: SeedValues, metric: Metric) -> str:
    """At most five characters, and the mark of a suspect number."""
    if sample.mean is None:
        return "-"
    mark = SUSPECT_MARK if sample.suspect else ""
    for limit, divisor, letter in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if sample.mean >= limit:
            return f"{sample.mean / divisor:.3g}{letter}{mark}"
    return f"{metric.cell(sample.mean)}{mark}"


def _notes(group: Sequence[PairDifference]) -> list[str]:
    """Notes below a table: seeds left out, suspect points, and flow by flow if there is one seed."""
    notes: dict[str, list[str]] = {}
    named = list(zip(group, row_names(group), strict=True))
    for one, name in named:
        for side, sample in (("A", one.goodput.a), ("B", one.goodput.b)):
            for note in _left_out(side, sample):
                notes.setdefault(note, []).append(name)
    flows = [flow_sentence(one, name) for one, name in named if one.flows and not one.goodput.suspect]
    return [*(f"{note}: {', '.join(whose)}" for note, whose in notes.items()), *flows]


def _show_baselines(console: Console, comparison: Comparison) -> None:
    for one in comparison.baselines:
        d = one.goodput
        if d.a.mean is not None and d.b.mean is not None and d.value is not None:
            _say(console, f"100 % is {d.a.mean:.4g} Mb/s in A, {d.b.mean:.4g} in B ({_title([one])})")
    intervals = sum(one.goodput.interval is not None for one in comparison.compared)
    if intervals >= 10:
        _say(
            console,
            f"Of {intervals} intervals of 95 %, about {intervals / 20:.0f} miss the true value by chance: "
            "do not rely on a single small difference.",
        )


def flow_sentence(one: PairDifference, name: str) -> str:
    """Return a sentence on the flows of the seed that both sides have."""
    flows = one.flows
    if flows is None:
        raise ValueError("this pair has no flows to compare")
    low, middle, high = (f"{q:+.{one.metric.decimals}f}" for q in flows.quartiles)
    return (
        f"{name}, seed {flows.seed}, flow by flow: {flows.faster} of {flows.flows} faster in B; "
        f"B - A is {middle} {flows.unit} at the median, {low} to {high} for the middle half "
        "(another permutation may give another result)"
    )


def _left_out(side: str, sample: SeedValues) -> list[str]:
    notes = []
    if sample.suspect:
        notes.append(f"{SUSPECT_MARK} in {side}, every point is suspect")
    if sample.left_out:
        notes.append(f"in {side}, {sample.left_out} suspect seed(s) left out of the mean")
    if sample.unpaired:
        notes.append(f"in {side}, {sample.unpaired} seed(s) left out, which the other side lacks")
    if sample.lost:
        notes.append(f"in {side}, {sample.lost} point(s) without a number (failed or no baseline)")
    return notes


def _show_unmatched(console: Console, comparison: Comparison) -> None:
    unmatched = comparison.unmatched
    for name, only in (("A", unmatched.only_a), ("B", unmatched.only_b)):
        if only:
            _say(console, f"\nonly in {name}:", style="bold")
            for line in describe(only):
                _say(console, f"  {line}")
    for both in unmatched.ambiguous:
        _say(console, "\nnot compared, because more than one partner is possible:", style="bold")
        for name, side in zip("AB", both, strict=True):
            for line in describe(side):
                _say(console, f"  {name}: {line}")


def describe(conditions: Sequence[Condition]) -> list[str]:
    """Return one line for the conditions that differ only in transport and seeds."""
    groups: dict[str, list[Condition]] = {}
    for condition in conditions:
        groups.setdefault(labels.family(condition.spec), []).append(condition)
    return [_described(group) for group in groups.values()]


def _described(group: Sequence[Condition]) -> str:
    transports = ", ".join(labels.names([condition.spec for condition in group]))
    seeds = sorted({seed for condition in group for seed in condition.by_seed()})
    engine = group[0].spec.engine
    made_by = "" if engine == "mininet" else f", {engine} engine"
    title = setting_title([condition.spec for condition in group])
    return f"{transports}: {title}{made_by} (seeds {', '.join(map(str, seeds))})"


def _show_origin(console: Console, contrasts: Mapping[Fact, tuple[Sequence[str], Sequence[str]]]) -> None:
    console.print()
    if not contrasts:
        _say(console, "kernel, tools, revision, sysctls and CPU: the same in A and B, as far as recorded")
        return
    _say(console, "machine and software, where A and B differ:", style="bold")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("", "A", "B"):
        table.add_column(head, overflow="fold")
    for fact, (a, b) in contrasts.items():
        table.add_row(Text(fact.name), Text(_values(a)), Text(_values(b)))
    console.print(table, highlight=False)


def _show_disagreements(
    console: Console, comparison: Comparison, disagreements: Sequence[Disagreement]
) -> None:
    console.print()
    if not disagreements:
        count = len(reproducible(comparison))
        equal = f"; {count} in virtual time {'is' if count == 1 else 'are'} equal" if count else ""
        _say(console, f"no disagreement: no point of A is missing in B or damaged{equal}")
        return
    _say(console, f"disagreements ({len(disagreements)}):", style="bold")
    for one in disagreements[:MAX_DISAGREEMENTS]:
        where = " ".join(part for part in (one.side, one.point) if part)
        _say(console, f"  {one.kind}: {f'{where}: ' if where else ''}{one.what}")
    if len(disagreements) > MAX_DISAGREEMENTS:
        _say(console, f"  and {len(disagreements) - MAX_DISAGREEMENTS} more (--json has them all)")


def _values(values: Sequence[str]) -> str:
    text = " / ".join(values) or "not recorded"
    return text if len(text) <= _ORIGIN_SHOWN else f"{text[:_ORIGIN_SHOWN]} ..."


def write(stream: IO[str], comparison: Comparison, disagreements: Sequence[Disagreement]) -> None:
    """Write one JSON object per line: `side` twice, `pair`, `unmatched`, `origin`, `disagreement`, and `done`
    with the exit code at the end."""
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        damaged = [str(error) for error in side.broken]
        write_json(stream, {"event": "side", "side": name, "path": str(side.path),
                            "points": len(side.measured), "damaged": damaged})  # fmt: skip
    for one in (*comparison.baselines, *comparison.compared):
        write_json(stream, {"event": "pair", **pair_fields(one)})
    unmatched = comparison.unmatched
    for name, only in (("A", unmatched.only_a), ("B", unmatched.only_b)):
        for condition in only:
            write_json(stream, {"event": "unmatched", "side": name, "why": "no partner",
                                **_condition_fields(condition)})  # fmt: skip
    for both in unmatched.ambiguous:
        for name, side_of in zip("AB", both, strict=True):
            for condition in side_of:
                write_json(stream, {"event": "unmatched", "side": name, "why": "more than one partner",
                                    **_condition_fields(condition)})  # fmt: skip
    for fact, (a, b) in comparison.provenance.items():
        write_json(stream, {"event": "origin", "name": fact.name, "a": a, "b": b})
    for one_of in disagreements:
        write_json(stream, {"event": "disagreement", **dataclasses.asdict(one_of)})
    unequal = sum(one_of.kind is DisagreementKind.UNEQUAL for one_of in disagreements)
    write_json(
        stream,
        {
            "event": "done",
            "pairs": len(comparison.compared),
            "equal_in_virtual_time": len(reproducible(comparison)) - unequal,
            "disagreements": len(disagreements),
            "exit_code": 1 if disagreements else 0,
        },
    )


def _condition_fields(condition: Condition) -> dict[str, Any]:
    return {"spec": dict(condition.fields), "points": [point.name for point in condition.points]}


def pair_fields(one: PairDifference) -> dict[str, Any]:
    """Return a pair as fields for JSON: the specs, every metric, differences and their intervals."""
    pair = one.pair
    return {
        "spec": {n: v for n, v in pair.a.fields.items() if n not in pair.differing},
        "parameters": {n: [pair.a.fields.get(n), pair.b.fields.get(n)] for n in pair.differing},
        "points_a": [point.name for point in pair.a.points],
        "points_b": [point.name for point in pair.b.points],
        "goodput": {"unit": one.unit, **_difference_fields(one.goodput)},
        **{metric.name: _difference_fields(d) for metric, d in one.others},
        "flow_by_flow": dataclasses.asdict(one.flows) if one.flows else None,
    }


def _difference_fields(d: Difference) -> dict[str, Any]:
    return {
        "a": d.a.mean,
        "b": d.b.mean,
        "difference": d.value,
        "interval95_half": d.interval.half if d.interval else None,
        "how": str(d.how),
        "pairs": d.pairs,
        "seeds_a": sorted(d.a.by_seed),
        "seeds_b": sorted(d.b.by_seed),
        "suspect_a": d.a.suspect,
        "suspect_b": d.b.suspect,
    }
