"""Tables on the terminal: the results of a sweep beside the published numbers, verdicts and claims."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.completion import ms_text
from common.text import three_digits
from harness import labels
from harness.baseline import is_baseline, off_by_arithmetic
from harness.claims.claims import AGREES, DIFFERS, NOT_MEASURED, SUSPECT, UNDECIDED, Colour, Verdict, place
from harness.claims.own_settings import OwnSettings
from harness.experiment import Figure
from harness.labels import named, network, queue_label, workload_label
from harness.metrics import published
from harness.metrics.metrics import (
    CALLS_OFFERED_PER_S,
    GOODPUT_MBPS_MEAN,
    GOODPUT_PCT_MEAN,
    OF_PROGRAMS,
    TABLES,
    Metric,
    ShownIn,
    measured_by_programs,
    shown_in,
)
from harness.options.options import DURATIONS
from harness.report import sentences
from harness.report.sentences import plus_minus
from harness.report.tables import ClaimRow
from harness.results import run_json
from harness.results.point_results import PointResult
from harness.streams import print_wrapped
from model.congestion import in_force
from model.reasons import texts
from model.result import Status
from model.spec import RunSpec
from model.words import words_at
from workloads import matrices

COLOURS = {Status.OK: "green", Status.SUSPECT: "yellow", Status.FAILED: "red"}
CLAIM_COLOURS = {Colour.GREEN: "green", Colour.AMBER: "yellow", Colour.RED: "red"}
VERDICT_COLOURS = {
    AGREES: "green",
    DIFFERS: "red",
    UNDECIDED: "yellow",
    SUSPECT: "yellow",
    NOT_MEASURED: "dim",
}
MANY_POINTS = 60
"""Of more points, tables have means over seeds."""
METRICS = shown_in(ShownIn.RUN, TABLES)
OF_TRANSFERS = shown_in(ShownIn.TRANSFERS, TABLES)


def print_results(
    console: Console,
    points: Sequence[PointResult],
    own: OwnSettings,
    metrics: tuple[Metric, ...] = (),
) -> None:
    """Print one table per network and workload of figures whose settings are `own`, with the reasons of
    suspect and failed points below it. `metrics` are columns of the user's."""
    groups: dict[str, list[PointResult]] = {}
    for judged in points:
        if not is_baseline(judged.spec):
            groups.setdefault(labels.family(judged.spec), []).append(judged)
    axes = labels.shared([judged.spec for judged in points]).axes
    titles = [_title(group, own, axes) for group in groups.values()]
    for title, group in zip(titles, groups.values(), strict=True):
        apart = f", {group[0].spec.warmup_s:g} s warm-up" if titles.count(title) > 1 else ""
        print_wrapped(console, f"{title}{apart}", "bold")
        console.print(_results(group, own, metrics), highlight=False)
        if measured := measured_by_programs(group):
            console.print(_programs(group, measured), highlight=False)
        _print_notes(console, group, own)
    baselines = (_baseline_line(judged) for judged in points if is_baseline(judged.spec))
    for line in dict.fromkeys(baselines):
        print_wrapped(console, line)


def print_figures(
    console: Console,
    points: Sequence[PointResult],
    figures: Iterable[tuple[Figure, Sequence[PointResult]]],
    own: OwnSettings,
    metrics: tuple[Metric, ...] = (),
) -> None:
    """Print all points (print_results), or of more than MANY_POINTS one table per figure: means over seeds by
    arm and by the setting that has most values."""
    measured = [judged for judged in points if not is_baseline(judged.spec)]
    if len(measured) <= MANY_POINTS:
        print_results(console, points, own, metrics)
        return
    groups = {
        figure.name: [judged for judged in of_figure if not is_baseline(judged.spec)]
        for figure, of_figure in figures
    }
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, group in groups.items():
        alike.setdefault(tuple(judged.name for judged in group), []).append(name)
    for names in alike.values():
        group = groups[names[0]]
        places = _places([judged.spec for judged in group])
        columns = _columns(group)
        means = [each for each in columns if ShownIn.MEANS in each.shown] or columns[:1]
        for metric in (*means, *metrics):
            unit = f", {metric.short_unit}" if metric.short_unit else ""
            print_wrapped(console, f"{', '.join(names)}: {metric.head}{unit}", "bold")
            console.print(_grid(group, places, metric), highlight=False)
    _print_doubts(console, measured, [labels.point_label(judged.spec) for judged in measured])


def _grid(group: Sequence[PointResult], places: Sequence[tuple[str, str]], metric: Metric) -> Table:
    """Return a table of means over seeds: a row and a column for each of the points' places."""
    cells: dict[tuple[str, str], list[float]] = {}
    for judged, at in zip(group, places, strict=True):
        value = None if judged.status is Status.FAILED else metric.at(judged)
        cells.setdefault(at, []).extend([] if value is None else [value])
    heads = dict.fromkeys(head for _, head in places)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for name in dict.fromkeys(name for name, _ in places):
        found = [cells.get((name, head)) for head in heads]
        means = ["" if each is None else metric.cell(fmean(each)) if each else "-" for each in found]
        table.add_row(Text(name), *map(Text, means))
    return table


def _places(specs: Sequence[RunSpec]) -> list[tuple[str, str]]:
    """Return row and column of each point: its arm with the settings in which points differ, but for the one
    with the most values, which is the column. Points of one place differ in their seeds alone."""
    settings, times = _settings(specs)
    column = max(settings, key=lambda words: len(set(words)), default=[""] * len(specs))
    rows = [labels.sender(spec) for spec in specs]
    keys = [spec.key(ignoring=("seed",)) for spec in specs]
    for words in (*(each for each in settings if each is not column), *times, keys):
        places = list(zip(rows, column, strict=True))
        if len(set(places)) == len(set(keys)):
            break
        if len(set(zip(places, words, strict=True))) > len(set(places)):
            rows = [f"{row}, {each}" if each else row for row, each in zip(rows, words, strict=True)]
    return list(zip(rows, column, strict=True))


def _settings(specs: Sequence[RunSpec]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words of each spec for each setting in which they differ; apart from them the times, which
    often follow from another setting."""
    parameters = dict.fromkeys(
        name for spec in specs for name in matrices.shown(spec.workload.matrix, spec.workload.params)
    )
    axes = labels.shared(specs).axes
    found = [
        *([_parameter(spec, name) for spec in specs] for name in parameters),
        [named(spec.topology) for spec in specs],
        [spec.workload.matrix for spec in specs],
        *([words_at(spec, path) for spec in specs] for path in axes if path not in DURATIONS),
        [spec.engine for spec in specs],
    ]
    times = [[words_at(spec, path) for spec in specs] for path in axes if path in DURATIONS]
    return [words for words in found if len(set(words)) > 1], times


def _parameter(spec: RunSpec, name: str) -> str:
    value = spec.workload.params.get(name, "")
    return f"{name} {value}" if value != "" else ""


def _print_doubts(console: Console, group: Sequence[PointResult], names: Sequence[str]) -> None:
    """Print why points, by their names, are not ok, and how often they were run."""
    for judged, name in zip(group, names, strict=True):
        if judged.reasons:
            text = f"{judged.state}: {name}: {texts(judged.reasons)}"
            print_wrapped(console, text, COLOURS[judged.status])
        if counts := run_json.attempt_words(judged.attempts):
            print_wrapped(console, f"{counts}: {name} ({run_json.brief_attempts(judged.attempts)})")
    for line in sentences.caution_lines(group):
        print_wrapped(console, line, COLOURS[Status.SUSPECT])


def print_verdicts(console: Console, figure: Figure, verdicts: Sequence[Verdict]) -> None:
    """Print published and measured values and whether they agree. print_details counts the statements
    about what was not run."""
    here = [verdict for verdict in verdicts if not verdict.elsewhere]
    if not here:
        return
    print_wrapped(console, f"{figure.name}: {figure.title}", "bold")
    console.print(_verdicts(here), highlight=False)


def _verdicts(found: Sequence[Verdict]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(published.known_as(v.published for v in found), ratio=1)
    for head in ("", "measured"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    said = Counter(verdict.published.words for verdict in found)
    for verdict in found:
        row = verdict.published
        where = f", {row.workload.replace('_', ' ')} at {place(row)}" if said[row.words] > 1 else ""
        why = f": {verdict.why}" if verdict.why and verdict.word != AGREES else ""
        table.add_row(
            Text.assemble(f"{row.words}{where} ({row.paper}, {row.source})", (why, "dim")),
            Text(f"{row.short()} {verdict.unit}".strip()),
            Text(_measured(verdict)),
            Text(verdict.word, style=VERDICT_COLOURS[verdict.word]),
        )
    return table


def _scores(verdicts: Sequence[Verdict]) -> list[str]:
    """Return how many published statements agree, and how many are about something else."""
    found = list(dict.fromkeys(verdicts))
    return sentences.score(found, "refabric report") if found else []


def print_details(
    console: Console, points: Sequence[PointResult], verdicts: Sequence[Verdict], more: Sequence[str] = ()
) -> None:
    """Print what the results are based on, what the machine did, and what was not measured."""
    found = [*sentences.details(points), *_scores(verdicts), *filter(None, more)]
    if not found:
        return
    console.print(Text("In detail", style="bold"))
    for sentence in found:
        print_wrapped(console, f"  {sentence}", indent=4)


def print_closing(
    console: Console,
    points: Sequence[PointResult],
    own: OwnSettings,
    verdicts: Sequence[Verdict],
    files: str,
    report: Path | None = None,
    headline: Sequence[str] = (),
) -> None:
    """Print the last lines, for somebody who reads nothing else: what was found, by a chart's
    `headline` where sentences would be too many, what was published, and which page to open."""
    print_wrapped(console, files)
    console.print()
    for sentence in sentences.results(points, own) or (*headline, *_scores(verdicts)[:1]):
        print_wrapped(console, sentence)
    if report is not None:
        print_wrapped(console, f"Open {report}")


def print_claims(console: Console, found: Sequence[ClaimRow], scored: str) -> None:
    """Print every claim of a paper by section: the published, simulated and emulated values."""
    if not found:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("claim", "published", "simulated", "emulated", "verdict"):
        table.add_column(head, ratio=None if head != "claim" else 1)
    for section, rows in itertools.groupby(found, key=lambda row: row.section):
        if section:
            table.add_row(Text(section, style="bold"))
        for row in rows:
            cells = (
                f"{row.published.value} ({row.published.note})",
                row.simulated.short(),
                row.emulated.short(),
            )
            verdict = Text(row.verdict, style=CLAIM_COLOURS[row.colour])
            about = Text.assemble(row.statement, (f" ({row.about})", "dim"))
            table.add_row(about, *map(Text, cells), verdict)
    console.print(table, highlight=False)
    print_wrapped(console, scored)


def _measured(verdict: Verdict) -> str:
    measured = verdict.measured
    if measured is None:
        return "-"
    unfinished = measured.unfinished_pct
    left = (
        ""
        if unfinished is None or unfinished < sentences.NOTABLE_PCT
        else f" ({unfinished:.1f} % unfinished)"
    )
    half = plus_minus(measured)
    return f"{three_digits(measured.value)}{half}{' (95 %)' if half else ''}{left}"


def _title(group: Sequence[PointResult], own: OwnSettings, axes: Sequence[str]) -> str:
    spec = group[0].spec
    specs = [judged.spec for judged in group]
    parts = [
        network(spec.topology),
        workload_label(spec),
        f"{spec.link.rate_mbps:g} Mb/s links",
        f"{queue_label(spec)} queues",
        labels.congestion(specs),
        labels.routing(specs),
        f"{spec.seconds:g} s",
        *labels.unusual_words(spec, without=("routing", "scheduler", "link.queue_bytes")),
    ]
    return f"{labels.with_axes(parts, spec, axes)} ({spec.engine}){labels.overriding(own.together(specs))}"


def _results(group: Sequence[PointResult], own: OwnSettings, metrics: tuple[Metric, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    seeded = len({judged.spec.seed for judged in group}) > 1
    columns = [*_columns(group), *metrics]
    table.add_column("trans-\nport", no_wrap=True)
    heads = [f"{m.head}\n{m.short_unit}" if m.short_unit else f"\n{m.head}" for m in columns]
    for head in [*(["\nseed"] if seeded else []), *heads]:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("\nstatus", no_wrap=True)
    rows = (
        [sentences.published_goodput(judged.spec, own) for judged in group]
        if GOODPUT_PCT_MEAN in columns
        else []
    )
    if any(rows):
        table.add_column("published\nmean %", no_wrap=True)
    names = labels.names([judged.spec for judged in group])
    for judged, name, row in itertools.zip_longest(group, names, rows):
        seed = [Text(str(judged.spec.seed))] if seeded else []
        values = ((metric, metric.at(judged)) for metric in columns)
        numbers = [Text("-" if value is None else metric.cell(value)) for metric, value in values]
        status = Text(judged.status.value, style=COLOURS[judged.status])
        beside = [Text(row.short() if row else "")] if any(rows) else []
        table.add_row(Text(name), *seed, *numbers, status, *beside)
    return table


def _programs(group: Sequence[PointResult], measured: Sequence[str]) -> Table:
    """Return a table of what programs measured: a row for each of its names at each point."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    names = labels.names([judged.spec for judged in group])
    seeded = len({judged.spec.seed for judged in group}) > 1
    for head in ("transport", *(["seed"] if seeded else []), "programs measured"):
        table.add_column(head, no_wrap=True)
    for head in OF_PROGRAMS:
        table.add_column(head.replace("per_s", "per s"), justify="right", no_wrap=True)
    for judged, name in zip(group, names, strict=True):
        for each in measured:
            if (f"{each}_count") in judged.metrics:
                values = (three_digits(judged.metrics[f"{each}_{what}"]) for what in OF_PROGRAMS)
                table.add_row(name, *([str(judged.spec.seed)] if seeded else []), each, *values)
    return table


def _columns(group: Sequence[PointResult]) -> list[Metric]:
    """The metrics that any point has. Without a baseline there is no percentage, so goodput is in Mb/s. Calls
    have no goodput, and for transfers it is not a result."""
    if all(judged.all_sized for judged in group):
        return [metric for metric in OF_TRANSFERS if any(metric.at(judged) is not None for judged in group)]
    known = [metric for metric in METRICS if any(metric.at(judged) is not None for judged in group)]
    beside = {GOODPUT_PCT_MEAN, GOODPUT_MBPS_MEAN, CALLS_OFFERED_PER_S}.isdisjoint(known)
    return [GOODPUT_MBPS_MEAN, *known] if beside else known


def _print_notes(console: Console, group: Sequence[PointResult], own: OwnSettings) -> None:
    of_transport = labels.names([judged.spec for judged in group])
    names = [f"{name}, seed {judged.spec.seed}" for name, judged in zip(of_transport, group, strict=True)]
    _print_doubts(console, group, names)
    for judged, name in zip(group, names, strict=True):
        for line in filter(None, (_completion(judged.metrics), _constant_rate(judged.metrics))):
            print_wrapped(console, f"{name}: {line}")
    rows = {
        judged.spec.transport.subflows: row
        for judged in group
        if (row := sentences.published_goodput(judged.spec, own))
    }
    for citation in dict.fromkeys(row.citation for row in rows.values()):
        numbers = (
            f"{labels.short(subflows)} {row.cited()}"
            for subflows, row in rows.items()
            if row.citation == citation
        )
        print_wrapped(console, f"published: {', '.join(numbers)}: {citation}")


def _completion(of: Mapping[str, float]) -> str:
    """`733 of 756 sized flows completed (23 unfinished), in 12 ms on average, median 1.2 ms, p99 210 ms`."""
    if "flows_started" not in of:
        return ""
    started, completed = of["flows_started"], of["flows_completed"]
    unfinished = f" ({started - completed:.0f} unfinished)" if started > completed else ""
    counted = f"{completed:.0f} of {started:.0f} sized flows completed{unfinished}"
    if not completed:
        return counted
    mean, median, p99 = (ms_text(of[f"fct_ms_{name}"]) for name in ("mean", "median", "p99"))
    return f"{counted}, in {mean} on average, median {median}, p99 {p99}"


def _constant_rate(of: Mapping[str, float]) -> str:
    """`16 flows of 10 Mb/s, constant: 0.52 % of 13212 packets lost`; empty without such flows."""
    if "constant_flows" not in of:
        return ""
    low, high = (f"{of[f'constant_rate_mbps_{end}']:g}" for end in ("min", "max"))
    sent, lost = of["constant_sent_pkts"], of["constant_lost_pkts"]
    share = 100 * lost / sent if sent else 0.0
    rate = low if low == high else f"{low} to {high}"
    flows = f"{of['constant_flows']:.0f} flows of {rate} Mb/s, constant"
    return f"{flows}: {share:.3g} % of {sent:.0f} packets lost"


def _baseline_line(judged: PointResult) -> str:
    spec, reached = judged.spec, judged.baseline_mbps
    queue = "" if spec.link.queue_pkts else ", unbounded queues"
    what = f"{named(spec.topology)}, {spec.link.rate_mbps:g} Mb/s{queue}, {in_force(spec.transport.cc, 1)}"
    if reached is None:
        return f"baseline ({what}): {judged.status}, so there are no percentages: {texts(judged.reasons)}"
    doubt = off_by_arithmetic(spec, reached)
    if judged.status is not Status.OK:
        doubt = f"this baseline is {judged.state}: {texts(judged.reasons)}"
    doubt = f"; {doubt}" if doubt else ""
    return f"100 % is {three_digits(reached)} Mb/s, one uncongested TCP flow ({what}){doubt}"
