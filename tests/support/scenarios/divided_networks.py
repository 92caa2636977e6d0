"""Simulations of networks in parts, and the bytes of everything that can be read of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engines.core_setup import PS_PER_S, core_datagrams, core_flows, plan_of, transport_options
from fabric._core import Simulation
from model.flows import planned_flows
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec

HTSIM = StackSpec(
    payload_bytes=1460, header_bytes=40, ack_bytes=40, initial_window=2, ssthresh=25, min_rto_ms=10.0,
    delayed_ack_ms=0.0, sack=False, reinject=False, start_spread_ms=5.0,
)  # fmt: skip
LINUX = StackSpec(start_spread_ms=2.0)


def point(k: int = 4, parts: int = 4, **fields: Any) -> RunSpec:
    """Return a point of MPTCP on a FatTree in parts, with other values of these fields."""
    usual = RunSpec(
        LinkSpec(100.0, 10.0, queue_pkts=30),
        TopologySpec("fat_tree", {"k": k}),
        TransportSpec(4, "lia"),
        WorkloadSpec("one_to_one"),
        engine="simulator",
        stack=LINUX,
        parts=parts,
    )
    return dataclasses.replace(usual, **fields)


def made(spec: RunSpec, threads: int = 1, **plan: Any) -> Simulation:
    """Return the point's simulation with other values of these fields of its plan."""
    topology = spec.network()
    flows = planned_flows(spec, topology)
    tuples = core_flows(spec, topology, flows), core_datagrams(topology, flows)
    changed = dataclasses.replace(plan_of(spec, topology), **plan)
    return Simulation(changed, transport_options(spec), *tuples, threads=threads)


def all_bytes(simulation: Simulation) -> dict[str, bytes]:
    readings: Sequence[Mapping[str, Any]] = (
        simulation.ports(),
        simulation.flows(),
        simulation.subflows(),
        simulation.datagrams(),
    )
    return {name: np.asarray(value).tobytes() for one in readings for name, value in one.items()}


def run(simulation: Simulation, seconds: float, steps: int = 1) -> Simulation:
    """Run up to this time with so many calls, most of which end within a window."""
    for step in range(1, steps + 1):
        simulation.run_until(round(seconds * PS_PER_S * step / steps))
    return simulation
