"""Checks before a run: parts of a spec that a flow-level model does not cover. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from common.errors import UsageError
from controllers.routing import per_packet
from engines.flow_level.equilibrium import ALGORITHMS
from model.fields.words import beyond
from model.noise import noisy
from model.schedulers import scheduled
from model.spec import ELASTIC, FIFO, PORT, RunSpec
from workloads.flow import Flow

OF_LINKS = frozenset(
    {"rate_mbps", "delay_us", "host_delay_us", "queue_pkts", "queue_bytes", "nic_queue_pkts", "clock_ppm"}
)
"""Fields of a LinkSpec that are accepted. Only the rate has an effect: steady rates here depend neither on
queues nor on round-trip times, which all count as equal (docs/flow-level.md)."""
OF_STACKS = frozenset(
    {
        "payload_bytes", "header_bytes", "ack_bytes", "mptcp_bytes", "mptcp_ack_bytes", "ack_gaps",
        "delayed_ack_ms", "acks", "replacement", "processing_frames",
    }
)  # fmt: skip
"""Fields of a StackSpec that the models have: bytes on the wire, acknowledgements, the choice of paths."""


def check_steady(spec: RunSpec, flows: Sequence[Flow]) -> None:
    """Raise UsageError for a spec that needs packets or time."""
    link = spec.link
    asked = {
        "link events": bool(spec.events),
        "central schedulers": scheduled(spec),
        "CPUs that stall": noisy(spec),
        f"the {spec.clock} clock": spec.clock != ELASTIC,
        "random loss": link.loss > 0,
        "ECN (--ecn)": link.ecn_pkts > 0,
        "random drop (--random-drop)": link.random_pkts > 0,
        "links that follow a trace (--link-trace)": bool(link.trace),
        f"queue discipline {link.discipline} (--discipline)": link.discipline != FIFO,
        f"host queue {link.host_queue} (--host-queue)": link.host_queue != PORT,
        "networks in parts (--parts)": spec.parts > 1,
        "queue samples": spec.sampling.queues_ms > 0,
        "per-packet routing": per_packet(spec.routing),
        "flows of constant rate": any(flow.rate_mbps for flow in flows),
        "subflows that join later": spec.transport.joins_late,
        "flows that begin or end": any(f.size_bytes or f.start_s or f.after is not None for f in flows),
        **dict.fromkeys(beyond(OF_LINKS, spec, "link"), True),
        **dict.fromkeys(beyond(OF_STACKS, spec, "stack"), True),
    }
    for what, given in asked.items():
        if given:
            raise UsageError(
                f"{spec.engine} computes steady rates and does not support {what}: leave it out, or choose "
                "--engine simulator"
            )


def check_equilibrium(ccs: Collection[str]) -> None:
    """Raise UsageError for a congestion control without a formula here."""
    unknown = sorted(set(ccs) - set(ALGORITHMS))
    if unknown:
        raise UsageError(
            f"{unknown[0]} has no flow-level model: choose --cc of "
            f"{', '.join(ALGORITHMS)}, or --engine max-min"
        )
