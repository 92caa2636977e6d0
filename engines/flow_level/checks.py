"""What of a spec a flow-level model cannot say, refused before anything starts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from common.errors import UsageError
from controllers.routing import per_packet
from engines.flow_level.equilibrium import ALGORITHMS
from model.flows import PlannedFlow
from model.noise import noisy
from model.schedulers import scheduled
from model.spec import ELASTIC, FIFO, PORT, RunSpec


def check_steady(spec: RunSpec, flows: Sequence[PlannedFlow]) -> None:
    """Raises UsageError for what needs packets or time."""
    link = spec.link
    asked = {
        "link events": bool(spec.events),
        "central scheduler": scheduled(spec),
        "CPUs that stall": noisy(spec),
        f"{spec.clock} clock": spec.clock != ELASTIC,
        "random loss": link.loss > 0,
        "ECN": link.ecn_pkts > 0,
        "places of a queue given by chance": link.random_pkts > 0,
        f"queue discipline {link.discipline}": link.discipline != FIFO,
        f"host queue {link.host_queue}": link.host_queue != PORT,
        "queues to sample": spec.sampling.queues_ms > 0,
        "packets that choose paths one by one": per_packet(spec.routing),
        "flows of constant rate": any(flow.rate_mbps for flow in flows),
        "subflows that join later": spec.transport.joins_late,
        "flows that begin or end": any(f.size_bytes or f.start_s or f.after is not None for f in flows),
    }
    for what, given in asked.items():
        if given:
            raise UsageError(
                f"{spec.engine} has steady rates and no {what}: leave that out, or choose --engine simulator"
            )


def check_equilibrium(flows: Sequence[PlannedFlow]) -> None:
    """Raises UsageError for a congestion control without a formula here."""
    unknown = sorted({flow.cc for flow in flows} - set(ALGORITHMS))
    if unknown:
        raise UsageError(
            f"the flow-level equilibrium of {unknown[0]} is not modelled: choose --cc of "
            f"{', '.join(ALGORITHMS)}, or --engine max-min"
        )
