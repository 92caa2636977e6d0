"""The kind of workload that all engines have: flows between hosts, and the verdict on their results."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from analysis.plausibility import impossible, starved
from engines.workload import WorkloadKind
from model.reasons import GOODPUT, JAIN, SLOWEST
from model.result import FlowRow, RunResult
from model.spec import RunSpec


def verdict(result: RunResult, spec: RunSpec) -> RunResult:
    """Return `result`, failed if it has no number or a number about nothing, suspect if flows delivered
    more than links carry, and with a caution if flows starved. Where flows have sizes, the point is about
    completion times, and too much goodput is a caution, too."""
    if lacking := _lack_of_data(result.flows, spec):
        return result.without_data(lacking)
    topology = spec.network()
    rate_mbps = spec.link.rate_mbps
    above = impossible(result.flows, topology, rate_mbps)
    cautions = (*result.cautions, *starved(result.flows, topology, rate_mbps))
    if any(flow.size_bytes for flow in result.flows):  # it is about completion times
        of_goodput = tuple(dataclasses.replace(each, doubts=(GOODPUT, SLOWEST, JAIN)) for each in above)
        return dataclasses.replace(result, cautions=(*cautions, *of_goodput))
    return dataclasses.replace(result, cautions=cautions).doubted(above)


def _lack_of_data(flows: Sequence[FlowRow], spec: RunSpec) -> str:
    """Return why the point has no number; empty if it has."""
    if not flows:
        return "no flow has data"
    lacking = [flow.flow for flow in flows if not math.isfinite(flow.goodput_mbps)]
    if lacking:
        return f"flow {lacking[0]} has no goodput"
    if any(flow.goodput_mbps for flow in flows):
        return ""
    ended = sum(flow.size_bytes > 0 and flow.start_s + flow.completed_s <= 0 for flow in flows)
    if ended == len(flows):
        return f"all {ended} flows had ended before the window: leave out --warmup, or use a shorter one"
    return f"no flow delivered a byte in the {spec.seconds:g} s of the window: measure longer (--seconds)"


KIND = WorkloadKind(
    engines={
        "mininet": "engines.emulation.engine",
        "linux": "engines.linux.engine",
        "simulator": "engines.simulation.engine",
        "flow-level": "engines.flow_level.engine",
        "max-min": "engines.flow_level.engine",
        "ideal": "engines.flow_level.ideal",
    },
    verdict=verdict,
    drawn=True,
)
