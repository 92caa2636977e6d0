"""The time that each flow of a point would take alone on its path. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import accumulate

from engines.core_setup.completion import ideal_s
from engines.core_setup.setup import built, plan_of
from engines.core_setup.stack import stack_of
from model.congestion import BASELINE
from model.flows import PlannedFlow
from model.result import NO_VALUE
from model.spec import RunSpec
from topos.topology import Topology


def times_alone_s(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> list[float]:
    """Return each flow's time alone on the path of its first subflow; NO_VALUE for one without a size."""
    if not any(flow.size_bytes for flow in flows):
        return [NO_VALUE] * len(flows)
    plan, stack = plan_of(spec, topology), stack_of(spec)
    known = [dataclasses.replace(flow, cc=BASELINE) for flow in flows]
    simulation = built(spec, topology, known, plan, stack)
    first = accumulate((flow.subflows for flow in flows[:-1]), initial=0)
    return [
        ideal_s(flow.size_bytes, simulation.path(subflow), plan, stack) if flow.size_bytes else NO_VALUE
        for flow, subflow in zip(flows, first, strict=True)
    ]
