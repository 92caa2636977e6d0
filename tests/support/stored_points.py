"""Specs, results and stored points for the tests of this folder."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

from harness.baseline import baseline_of
from harness.options.fields import USUAL_TRAFFIC
from harness.results.point_results import PointResult
from harness.results.run_json import PROVENANCE, Attempt
from harness.results.store import Store
from model.result import FlowRow, PortRow, RunResult, Status, Table
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.reasons import of_text

EXPERIMENT = "cs244-one-to-one"


def spec_of(subflows: int = 1, *, k: int = 4, seed: int = 1, rate_mbps: float = 5.0) -> RunSpec:
    """Return the spec of a point of the k=4 sweep."""
    return RunSpec(
        link=LinkSpec(rate_mbps),
        topology=TopologySpec("fat_tree", {"k": k}),
        transport=TransportSpec(subflows),
        workload=WorkloadSpec("one_to_one"),
        traffic=USUAL_TRAFFIC,
        seed=seed,
    )


def flow_row(number: int, goodput_mbps: float, subflows: int = 1) -> FlowRow:
    """Return a flow that had this goodput in the window of `spec_of`, 40 s."""
    received = _received(goodput_mbps, 40.0)
    return FlowRow(
        number, "p0e0h0", "p1e0h0", "10.0.0.2", "10.1.0.2", 40000 + number, 5001, "tcp", subflows, subflows,
        "reno", goodput_mbps, received, 3 * number, 0.25,
    )  # fmt: skip


def result_of(goodputs: Sequence[float], status: Status = Status.OK, *reasons: str) -> RunResult:
    """Return a whole result with one flow per goodput, in Mb/s."""
    return RunResult(
        status,
        tuple(map(of_text, reasons)),
        tuple(flow_row(number, mbps) for number, mbps in enumerate(goodputs)),
        (PortRow(0, "p0e0h0", "p0e0", "host-edge", 1000, 1_500_000, 7, 99, 61.5),),
        {
            "goodput": Table.from_rows(("t_s", "flow", "mbps"), [(-1.0, 0, 1.5), (0.5, 0, 0.1 + 0.2)]),
            "remarks": Table.from_rows(("t_s", "busy_pct", "note"), [(0.5, 31.25, "a,b")]),
        },
        {"cpu_busy_pct": 31.25, "late_p99_us": 120.0},
        {"kernel": "6.18", "sysctls": {"net.ipv4.tcp_sack": 1}},
    )


def _received(goodput_mbps: float, seconds: float) -> int:
    return round(goodput_mbps * seconds * 1e6 / 8) if math.isfinite(goodput_mbps) else 0


def in_window_of(spec: RunSpec, result: RunResult) -> RunResult:
    """Return the result with the bytes that the flows of `flow_row` receive in the window of `spec`; other
    flows as they are."""
    flows = [
        dataclasses.replace(flow, bytes_received=_received(flow.goodput_mbps, spec.seconds))
        if flow.bytes_received == _received(flow.goodput_mbps, 40.0)
        else flow
        for flow in result.flows
    ]
    return dataclasses.replace(result, flows=tuple(flows))


def put(store: Store, spec: RunSpec, result: RunResult) -> PointResult:
    """Store a result as a sweep does."""
    result = in_window_of(spec, result)
    with store.writing(spec) as writer:
        (writer.raw / "iperf3.json").write_text("{}")
        return writer.commit(result, 16, 60.25, [Attempt.of(result, 60.25, "")])


def put_baseline(store: Store, spec: RunSpec, goodput_mbps: float, status: Status = Status.OK) -> PointResult:
    """Store the baseline of `spec`."""
    reasons = () if status is Status.OK else ("late",)
    return put(store, baseline_of(spec), result_of([goodput_mbps], status, *reasons))


def simulated_files(results: Path) -> dict[str, bytes]:
    """Return all files of simulated points' folders except the provenance."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in sorted(results.rglob("simulator-*/**/*"))
        if path.is_file() and path.name != PROVENANCE
    }


def leftovers(folder: Path) -> list[str]:
    """Return the names of everything unfinished in an experiment's folder: hidden, but no report's record."""
    hidden = (entry.name for entry in folder.iterdir() if entry.name.startswith("."))
    return [name for name in hidden if not name.startswith(".report")]
