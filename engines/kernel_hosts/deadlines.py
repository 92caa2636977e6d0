"""How long connecting and a whole point may take, in seconds of the hosts' time. Pure."""

from __future__ import annotations

import topos
from model.flows import planned_flows
from model.spec import RunSpec

DEADLINE_SLACK_S = 180.0


def connect_s(flows: int, subflows: int) -> float:
    """Return the deadline in seconds for connecting all flows and joining all their subflows.

    A saturated machine needs 30 ms per flow (k=10 at 20 Mb/s: 40 s for 250 flows with 8 subflows).
    """
    return 60.0 + 0.01 * flows * subflows


def slack_s(spec: RunSpec) -> float:
    """Return the time allowed beyond warm-up and window, for connecting on a saturated machine."""
    flows = planned_flows(spec, topos.build(spec.topology.kind, spec.topology.params))
    return connect_s(len(flows), spec.transport.subflows) + DEADLINE_SLACK_S
