"""Stored points as a notebook reads them: settings, status, and tables of flows, ports and samples."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.api.columns import Columns, html_table
from harness.metrics.columns import record
from harness.metrics.metric import Metric
from harness.points.baseline import is_baseline
from harness.points.labels import label
from harness.results.point_results import Judged
from harness.results.tables import Cell
from model.reasons import texts
from model.result import FlowRow, PortRow
from model.spec import RunSpec


class Samples(Mapping[str, Columns]):
    """The sample tables of a point: `samples["queues"]["pkts"]`. Each is read from disk when asked for."""

    def __init__(self, judged: Judged) -> None:
        self._judged = judged

    def __getitem__(self, name: str) -> Columns:
        if name not in self._judged.point.sample_rows:
            raise KeyError(f"there are no samples {name!r}: this point has {', '.join(self) or 'none'}")
        return Columns(self._judged.point.sample(name).columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self._judged.point.sample_rows)

    def __len__(self) -> int:
        return len(self._judged.point.sample_rows)

    def __repr__(self) -> str:
        return f"Samples({', '.join(f'{name}: {rows} rows' for name, rows in self._sizes())})"

    def _sizes(self) -> list[tuple[str, int]]:
        return sorted(self._judged.point.sample_rows.items())


@dataclass(frozen=True)
class Point:
    """One point of an experiment: its spec, its status, and what it measured.

    `status` is `ok`, `suspect` or `failed`; `reasons` says why. Goodput is the mean over the flows, in Mb/s
    and in percent of `baseline_mbps`, one uncongested TCP flow; None where there is no such number.
    """

    experiment: str
    judged: Judged
    own: tuple[Metric, ...] = ()
    """Metrics of a user's file."""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.judged.point.name

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.judged.point.path

    @property
    def label(self) -> str:
        """Its settings in words: `k=4 one_to_one, MPTCP 8 LIA, seed 1, simulated`."""
        return label(self.spec)

    @property
    def spec(self) -> RunSpec:
        """Everything that determines its result."""
        return self.judged.spec

    @property
    def status(self) -> str:
        return self.judged.status.value

    @property
    def reasons(self) -> str:
        return texts(self.judged.reasons)

    @property
    def subflows(self) -> int:
        """Subflows per flow; 1 is plain TCP."""
        return self.spec.transport.subflows

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def is_baseline(self) -> bool:
        """Whether it is the uncongested flow that percentages refer to."""
        return is_baseline(self.spec)

    @property
    def goodput_mbps(self) -> float | None:
        return self.judged.goodput_mbps.mean if self.judged.goodput_mbps else None

    @property
    def goodput_pct(self) -> float | None:
        return self.judged.goodput_pct.mean if self.judged.goodput_pct else None

    @property
    def baseline_mbps(self) -> float | None:
        return self.judged.baseline_mbps

    @property
    def jain(self) -> float | None:
        """Jain's fairness index of the flows' goodputs."""
        return self.judged.jain

    @property
    def metrics(self) -> Mapping[str, float]:
        """The numbers of the whole point, e.g. `late_p99_us`, and those of the metrics of a user's file."""
        own = {metric.name: metric.at(self.judged) for metric in self.own}
        return {
            **self.judged.point.metrics,
            **{name: value for name, value in own.items() if value is not None},
        }

    @functools.cached_property
    def flows(self) -> Columns:
        """One row per flow (model/result.py, FlowRow); numbers that were not measured are nan."""
        return Columns.of(FlowRow, self.judged.point.flows)

    @functools.cached_property
    def ports(self) -> Columns:
        """One row per direction of a link (model/result.py, PortRow)."""
        return Columns.of(PortRow, self.judged.point.ports)

    @property
    def samples(self) -> Samples:
        """Tables over time, with `t_s` from the start of the measured window."""
        return Samples(self.judged)

    def record(self) -> dict[str, Cell | None]:
        """Return its row of summary.csv; None where it has no such number."""
        return record(self.experiment, self.judged, self.own)

    def __repr__(self) -> str:
        goodput = "no goodput" if self.goodput_mbps is None else f"{self.goodput_mbps:.4g} Mb/s"
        return f"<Point {self.label}: {self.status}, {goodput}>"

    def _repr_html_(self) -> str:
        """Return its settings and numbers as a table, for notebooks."""
        shown = [(name, value) for name, value in self.record().items() if value not in (None, "")]
        return html_table((self.label, ""), shown)
