"""Tables for people: the results of a sweep beside the published numbers, and the state of a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engines.result import Status
from engines.spec import RunSpec
from experiments import published
from experiments.progress import transport_label
from experiments.reference import is_reference
from experiments.summary import Judged

COLOURS = {Status.OK: "green", Status.SUSPECT: "yellow", Status.FAILED: "red"}
MIN_WIDTH = 110


def console_for(stream: IO[str]) -> Console:
    """A console on `stream`; a pipe has no width of its own and gets one no table is cut by."""
    return Console(file=stream) if stream.isatty() else Console(file=stream, width=MIN_WIDTH)


def print_results(stream: IO[str], points: Sequence[Judged], known: tuple[published.Published, ...]) -> None:
    """One table for each network and workload; reasons of suspect and failed points below it."""
    console = console_for(stream)
    groups: dict[tuple[object, ...], list[Judged]] = {}
    for judged in points:
        if not is_reference(judged.spec):
            groups.setdefault(_group(judged.spec), []).append(judged)
    for group in groups.values():
        console.print(_results(group, known), highlight=False)
        _print_notes(console, group, known)
    references = [judged for judged in points if is_reference(judged.spec)]
    for judged in references:
        console.print(_reference_line(judged), highlight=False, soft_wrap=True)


def _group(spec: RunSpec) -> tuple[object, ...]:
    return (spec.engine, spec.dataplane, spec.topology.kind, spec.topology.k, spec.workload.matrix,
            spec.link.rate_mbps, spec.transport.cc)  # fmt: skip


def _results(group: Sequence[Judged], known: tuple[published.Published, ...]) -> Table:
    spec = group[0].spec
    title = (
        f"{spec.topology.kind} k={spec.topology.k}, {spec.workload.matrix}, {spec.link.rate_mbps:g} Mb/s links, "
        f"{spec.link.queue_pkts}-packet queues, {spec.transport.cc}, {spec.seconds:g} s ({spec.engine})"
    )
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    seeded = len({judged.spec.seed for judged in group}) > 1
    table.add_column("transport")
    if seeded:
        table.add_column("seed", justify="right")
    for head in ("mean %", "min %", "median %", "Jain", "retrans-\nmits", "CPU\nbusy %", "late\np99 us"):
        table.add_column(head, justify="right")
    table.add_column("status")
    table.add_column("published\nmean %")
    for judged in group:
        cells = [Text(transport_label(judged.spec)), *([Text(str(judged.spec.seed))] if seeded else [])]
        table.add_row(*cells, *_numbers(judged), *_verdict(judged, known))
    return table


def _numbers(judged: Judged) -> list[Text]:
    pct = judged.goodput_pct
    return [
        _cell(pct.mean if pct else None, "{:.1f}".format),
        _cell(pct.minimum if pct else None, "{:.1f}".format),
        _cell(pct.median if pct else None, "{:.1f}".format),
        _cell(judged.jain, "{:.3f}".format),
        _cell(judged.retransmits, "{:.0f}".format),
        _cell(judged.metric("cpu_busy_pct"), "{:.0f}".format),
        _cell(judged.metric("late_p99_us"), "{:.0f}".format),
    ]


def _cell(value: float | None, show: Callable[[float], str]) -> Text:
    return Text("-" if value is None else show(value))


def _verdict(judged: Judged, known: tuple[published.Published, ...]) -> list[Text]:
    row = _published(judged.spec, known)
    mark = "" if row is None or row.k in {None, judged.spec.topology.k} else f" at k={row.k}"
    return [
        Text(judged.status.value, style=COLOURS[judged.status]),
        Text(f"{row.text()}{mark}" if row else ""),
    ]


def _published(spec: RunSpec, known: tuple[published.Published, ...]) -> published.Published | None:
    return published.find(
        known, "goodput_pct_mean", spec.workload.matrix, spec.transport.subflows, spec.topology.k
    )


def _print_notes(console: Console, group: Sequence[Judged], known: tuple[published.Published, ...]) -> None:
    for judged in group:
        if judged.reasons:
            seed = f" seed {judged.spec.seed}"
            text = f"  {judged.status}: {transport_label(judged.spec)}{seed}: {'; '.join(judged.reasons)}"
            console.print(Text(text), style=COLOURS[judged.status], soft_wrap=True)
    sources = {row.citation for judged in group if (row := _published(judged.spec, known))}
    for citation in sorted(sources):
        console.print(Text(f"  published: {citation}"), soft_wrap=True)


def _reference_line(judged: Judged) -> Text:
    spec, reached = judged.spec, judged.reference_mbps
    what = f"k={spec.topology.k}, {spec.link.rate_mbps:g} Mb/s, {spec.transport.cc}"
    if reached is None:
        return Text(
            f"reference ({what}): {judged.status}, so there are no percentages: {'; '.join(judged.reasons)}"
        )
    return Text(f"100 % is {reached:.3g} Mb/s, one uncongested TCP flow ({what})")


def print_status(stream: IO[str], rows: Sequence[tuple[str, str, str]]) -> None:
    """Rows of (state, point, reasons); state is ok, suspect, failed or missing."""
    for state, name, reasons in rows:
        print(f"{state:8} {name}" + (f"  ({reasons})" if reasons else ""), file=stream)
