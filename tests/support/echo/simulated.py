"""Echoes between simulated hosts: links are idle, so that only their delays count."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from engines.engine import Observer
from engines.provenance import origin
from model.result import RunResult
from model.spec import RunSpec
from tests.support.echo import per_s, result_of


def check(spec: RunSpec) -> None:
    """Accept every spec."""
    spec.network()


def memory_mb(spec: RunSpec) -> float:
    del spec
    return 1.0


def expected_s(spec: RunSpec) -> float:
    del spec
    return 0.01


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run the point."""
    del raw
    observer.phase("measure", expected_s(spec))
    topology = spec.network()
    first, last = topology.hosts[0], topology.hosts[-1]
    links = len(topology.shortest_paths(first, last)[0]) - 1
    echo_ms = 2 * (links * spec.link.delay_us + 2 * spec.link.host_delay_us) / 1000
    times_s = (number / per_s(spec) for number in range(int(spec.seconds * per_s(spec))))
    result = result_of((t_s, echo_ms) for t_s in times_s)
    return dataclasses.replace(result, reproducible=True, provenance=origin())
