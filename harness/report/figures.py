"""Adapter from stored points to the charts of `plots/`, which know nothing of how points are stored."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import topos
from analysis.noise_effects import delay_share, queue_share
from analysis.shares import SHARE_OF_BOTTLENECK, SHARE_ON_CONGESTED
from common import files
from common.errors import StoreError
from common.side_by_side import side_by_side
from engines.registry import VIRTUAL_TIME
from harness.claims.published import Published, Relation
from harness.cli.progress import workload_label
from harness.experiment import Figure
from harness.plan import labels
from harness.results.across import alike
from harness.results.summary import Judged
from model import tuning
from model.link_events import outage
from model.noise import QUIET
from model.result import Table, under_test
from model.spec import (
    RunSpec,
    SchedulerSpec,
    WorkloadSpec,
)
from model.transports import USUAL_ROUTING
from plots.registry import CHARTS
from workloads import matrices

if TYPE_CHECKING:
    from plots.data import Level, PointSummary

_QUANTITIES = {
    "goodput_pct_mean": "mean",
    "goodput_pct_min": "min",
    "links_busy_pct": "links_busy_pct",
    "links_unused_pct": "links_unused_pct",
    "link_pct_mean": "link_pct_mean",
    "fct_ms_mean": "fct_ms_mean",
    "links_used_pct": "links_used_pct",
    "jain": "jain",
    "window_top_pkts": "window_top_pkts",
    "empty_way_ms": "empty_way_ms",
    SHARE_OF_BOTTLENECK: SHARE_OF_BOTTLENECK,
    SHARE_ON_CONGESTED: SHARE_ON_CONGESTED,
}


@dataclass(frozen=True)
class Wanted:
    """The charts of `figure` with these points, into folder `out`. `expected` are subflow counts that belong
    on the axes, measured or not."""

    figure: Figure
    points: Sequence[Judged]
    out: Path
    expected: Sequence[int] = ()


def draw(wanted: Sequence[Wanted]) -> dict[str, list[Path]]:
    """Draw all charts, as many at once as there are CPUs; the files of each figure, by its name. Raises
    StoreError."""
    drawn: dict[str, list[Path]] = {each.figure.name: [] for each in wanted}
    tasks: list[tuple[str, Callable[[], list[Path]]]] = []
    for each in wanted:
        tasks += [(each.figure.name, task) for task in _charts(each)]
    for (name, _), paths in zip(tasks, side_by_side([task for _, task in tasks]), strict=True):
        drawn[name] += paths
    for out in dict.fromkeys(each.out for each in wanted if each.points):
        with files.storing(f"giving back {out}"):
            files.give_back(out)
    return drawn


def _charts(wanted: Wanted) -> list[Callable[[], list[Path]]]:
    if not wanted.points:
        return []
    with files.storing(f"creating {wanted.out}"):
        files.make_folder(wanted.out)
    summaries = [summarised(judged) for judged in wanted.points]
    levels = published_levels(wanted.figure.published)
    charts = (CHARTS[name] for name in wanted.figure.charts)
    return [
        functools.partial(chart.draw, summaries, wanted.out, expected=wanted.expected, levels=levels)
        for chart in charts
    ]


def summarised(judged: Judged) -> PointSummary:
    """A point as charts want it."""
    from plots.data import PointSummary  # noqa: PLC0415

    spec, pct = judged.spec, judged.goodput_pct
    reference_mbps = judged.reference_mbps
    flows = under_test(judged.point.flows)
    compared = flows if pct and reference_mbps else ()
    return PointSummary(
        engine=spec.engine,
        dataplane=spec.dataplane,
        topology=spec.topology.kind,
        k=spec.topology.k,
        hosts=judged.point.hosts,
        workload=spec.workload.matrix,
        subflows=spec.transport.subflows,
        cc=spec.transport.cc,
        rate_mbps=spec.link.rate_mbps,
        queue_pkts=spec.link.queue_pkts,
        seconds=spec.seconds,
        seed=spec.seed,
        status=judged.status,
        reasons=tuple(reason.text for reason in judged.reasons),
        goodput_pct_mean=pct.mean if pct else None,
        reference_mbps=reference_mbps,
        flows_pct=tuple(100 * flow.goodput_mbps / reference_mbps for flow in compared if reference_mbps),
        rate_choice=_text(judged, "rate_choice"),
        kernel="" if spec.engine in VIRTUAL_TIME else _text(judged, "kernel"),
        variant=labels.settings(spec),
        routing=spec.routing,
        common=labels.settings(_common(spec)),
        scheduler=spec.scheduler,
        unscheduled=labels.settings(dataclasses.replace(spec, scheduler=SchedulerSpec())),
        tuning=tuning.words_of(spec),
        joins=tuning.joins(spec.transport),
        untuned=labels.settings(_untuned(spec)),
        across=labels.settings(alike(spec)),
        flows=tuple(flows),
        ports=judged.point.ports,
        metrics=judged.point.metrics,
        ecn_pkts=spec.link.ecn_pkts,
        without_loss=labels.settings(
            dataclasses.replace(spec, link=dataclasses.replace(spec.link, loss=0.0))
        ),
        matrix=workload_label(spec),
        matrix_words=matrices.words(spec.workload.matrix, spec.workload.params),
        under_any_matrix=labels.settings(
            dataclasses.replace(spec, workload=WorkloadSpec(spec.workload.matrix))
        ),
        shape=topos.shape(spec.topology.kind, spec.topology.params),
        noise=spec.noise,
        clock=spec.clock,
        quiet=labels.settings(dataclasses.replace(spec, noise=QUIET)),
        late_share=delay_share(spec),
        late_queue_share=queue_share(spec),
        outage_s=outage(spec),
        read_table=lambda name: _table(judged, name),
    )


def _table(judged: Judged, name: str) -> Table | None:
    """A damaged sample file costs its own chart alone, and is named."""
    if name not in judged.point.sample_rows:
        return None
    try:
        return judged.point.sample(name)
    except StoreError as error:
        _say_once(str(error))
        return None


@functools.cache
def _say_once(text: str) -> None:
    """Several charts read one file, and cs244's figures share points."""
    print(f"refabric: {text}", file=sys.stderr)


def _text(judged: Judged, name: str) -> str:
    value = judged.point.provenance.get(name, "")
    return value if isinstance(value, str) else ""


def _common(spec: RunSpec) -> RunSpec:
    stack = dataclasses.replace(spec.stack, dup_threshold=0)
    transport = dataclasses.replace(spec.transport, join_after_ms=0.0, join_after_bytes=0)
    return dataclasses.replace(spec, routing=USUAL_ROUTING, stack=stack, transport=transport)


def _untuned(spec: RunSpec) -> RunSpec:
    transport = dataclasses.replace(spec.transport, sysctls={}, write_bytes=0)
    return dataclasses.replace(spec, transport=transport, stack=tuning.untuned(spec.stack))


def published_levels(known: Sequence[Published]) -> list[Level]:
    """The published numbers charts can draw: means, bounds that hold for every flow, shares of links."""
    from plots.data import Level  # noqa: PLC0415

    return [
        Level(
            topology=p.topology,
            workload=p.workload.partition(":")[0],
            quantity=_QUANTITIES[p.metric.name],
            subflows=p.subflows,
            relation=p.relation,
            value=p.value,
            k=p.k,
            paper=p.paper,
            source=p.source,
            algorithm=p.algorithm,
            shape=p.shape,
        )
        for p in known
        if _drawable(p)
    ]


def _drawable(number: Published) -> bool:
    if number.metric.name == "goodput_pct_min":
        return number.relation is Relation.AT_LEAST
    return number.metric.name in _QUANTITIES
