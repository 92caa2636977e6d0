"""Simulations share nothing: run in turns, in threads or one after the other, they give the same bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from engines.core_setup.stack import PS_PER_S
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.scenarios.divided_networks import all_bytes, made

STEPS_PS = [round(step * 0.02 * PS_PER_S) for step in range(1, 26)]
MPTCP = RunSpec(
    LinkSpec(20.0, 10.0, random_pkts=20, loss=0.001),
    TopologySpec("fat_tree", {"k": 4}),
    TransportSpec(4, "lia"),
    WorkloadSpec("beside_constant_rate"),
    stack=StackSpec(scheduler="burst", recovery="linux", send_buffer=200, start_spread_ms=20.0),
)
SCATTERED = RunSpec(
    LinkSpec(40.0, 5.0, queue_pkts=30, ecn_pkts=10, discipline="priority"),
    TopologySpec("fat_tree", {"k": 4}),
    TransportSpec(1, "dctcp"),
    WorkloadSpec("short_and_long", {"gap_ms": 20, "dscp": 46}),
    routing="scatter",
    seed=2,
)


def alone(spec: RunSpec) -> list[dict[str, bytes]]:
    simulation, found = made(spec), []
    for t_ps in STEPS_PS:
        simulation.run_until(t_ps)
        found.append(all_bytes(simulation))
    return found


def test_in_turns() -> None:
    specs = (MPTCP, SCATTERED, MPTCP)
    simulations = [made(spec) for spec in specs]
    found: list[list[dict[str, bytes]]] = [[], [], []]
    for t_ps in STEPS_PS:
        for simulation, steps in zip(simulations, found, strict=True):
            simulation.run_until(t_ps)
            steps.append(all_bytes(simulation))
    assert found == [alone(spec) for spec in specs]
    assert found[0][-1] != found[1][-1]
    assert all(int(np.frombuffer(steps[-1]["hops"], np.int64)[0]) > 10_000 for steps in found)


def test_in_threads() -> None:
    """The core releases Python's lock while it simulates: both run at once where there are two CPUs."""
    found: dict[int, list[dict[str, bytes]]] = {}

    def in_thread(number: int, spec: RunSpec) -> Callable[[], None]:
        return lambda: found.__setitem__(number, alone(spec))

    threads = [threading.Thread(target=in_thread(i, spec)) for i, spec in enumerate((MPTCP, SCATTERED))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [found[0], found[1]] == [alone(MPTCP), alone(SCATTERED)]
