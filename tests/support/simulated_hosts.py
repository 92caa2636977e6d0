"""Simulated hosts on one switch, for tests of transports. NIC i's uplink is port 2i, its downlink 2i + 1."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from engines.core_setup import assign, transport_options
from fabric._core import Flow, Simulation, TransportOptions
from fabric.plan import NetworkPlan
from model.spec import LinkSpec, RunSpec
from tests.support.core_networks import one_switch

US = 1_000_000
MS = 1000 * US
S = 1000 * MS
PAYLOAD, HEADER, ACK = 1434, 80, 80
PACKET = PAYLOAD + HEADER
RATE_BPS = 10_000_000
PACKET_PS = PACKET * 8 * S // RATE_BPS
ACK_PS = ACK * 8 * S // RATE_BPS


def stack(**wanted: Any) -> TransportOptions:
    """Return options of hosts that send at once and acknowledge every segment, with a min RTO of 200 ms and
    the engine's defaults."""
    options = transport_options(RunSpec(LinkSpec(10.0)))
    plain = {"payload_bytes": PAYLOAD, "header_bytes": HEADER, "ack_bytes": ACK}
    assign(options, {**plain, "delayed_ack_ps": 0, "processing_frames": 0.0, **wanted})
    return options


def network(
    nics: int = 2, *, delay_ps: int = 0, queue_pkts: int = 100, loss: float = 0.0, rate_bps: int = RATE_BPS
) -> NetworkPlan:
    """Return the network. Uplinks have no limit: senders keep them short. Only downlinks lose packets."""
    plan = one_switch(nics, rate_bps, delay_ps, queue_pkts)
    queues, lost = plan.queue_pkts.copy(), np.zeros(2 * nics)
    queues[plan.nic_uplink] = 0
    lost[plan.nic_downlink] = loss
    return dataclasses.replace(plan, queue_pkts=queues, loss=lost, max_packets=1 << 20)


def with_rate(plan: NetworkPlan, rates: dict[int, int]) -> NetworkPlan:
    """Return the same plan with other rates (bit/s) of these NICs, both ways."""
    rate_bps = plan.rate_bps.copy()
    for nic, rate in rates.items():
        rate_bps[[2 * nic, 2 * nic + 1]] = rate
    return dataclasses.replace(plan, rate_bps=rate_bps)


def with_delay(plan: NetworkPlan, delays: dict[int, int]) -> NetworkPlan:
    """Return the same plan with other delays (ps) of these NICs, both ways."""
    delay_ps = plan.delay_ps.copy()
    for nic, delay in delays.items():
        delay_ps[[2 * nic, 2 * nic + 1]] = delay
    return dataclasses.replace(plan, delay_ps=delay_ps)


def tcp(
    pairs: Sequence[tuple[int, int]] = ((0, 1),), *, pkts: int = 0, start_ps: int = 0, cc: str = "reno"
) -> Flow:
    """Return a flow with a subflow for each pair of NICs and `pkts` full segments; 0 means endless."""
    subflows = [(*pair, i, i) for i, pair in enumerate(pairs)]
    return Flow(subflows=subflows, cc=cc, size_bytes=pkts * PAYLOAD, start_ps=start_ps)


TWO_PATHS = ((0, 2), (1, 3))
"""Between a host with NICs 0 and 1 and one with 2 and 3."""


def lose_downlink(simulation: Simulation, nic: int, now_ps: int) -> None:
    """Drop what is on the host's downlink at this instant."""
    simulation.run_until(now_ps)
    simulation.set_port_up(2 * nic + 1, False, now_ps)
    simulation.set_port_up(2 * nic + 1, True, now_ps)


def conserved(simulation: Simulation) -> bool:
    ports = simulation.ports()
    return ports["injected"] == ports["delivered"] + ports["dropped"] + ports["lost"]
