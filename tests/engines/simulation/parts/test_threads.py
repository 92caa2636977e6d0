"""A network in parts gives the same bytes for any number of threads; ThreadSanitizer runs this, too."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from engines.core_setup import PS_PER_S
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.scenarios.divided_networks import HTSIM, LINUX, all_bytes, made, point, run

SHORT_S = 0.03
LINUXLIKE = dataclasses.replace(LINUX, recovery="linux", scheduler="burst", handshake=True, send_buffer=60)
CASES: dict[str, RunSpec] = {
    "tcp": point(transport=TransportSpec(1, "reno"), stack=HTSIM),
    "mptcp": point(transport=TransportSpec(8, "lia")),
    "eight_parts": point(8, 8, transport=TransportSpec(2, "olia"), stack=HTSIM),
    "marks": point(
        link=LinkSpec(100.0, 10.0, queue_pkts=60, ecn_pkts=10), transport=TransportSpec(1, "dctcp")
    ),
    "as_linux": point(stack=LINUXLIKE, routing="ecmp"),
    "without_delay": point(link=LinkSpec(100.0, queue_pkts=30, random_pkts=5)),
    "priorities": point(
        link=LinkSpec(100.0, 20.0, queue_pkts=30, discipline="priority"),
        transport=TransportSpec(1, "cubic"),
        workload=WorkloadSpec("beside_constant_rate", {"dscp": 46}),
    ),
    "by_rank": point(
        link=LinkSpec(100.0, 10.0, queue_pkts=24, nic_queue_pkts=2, discipline="pfabric"),
        transport=TransportSpec(1, "mintcp"),
        stack=StackSpec(fixed_rto=True, min_rto_ms=2.0, probe_after=2, connections="persistent"),
        workload=WorkloadSpec("transfers", {"kb": 200}),
    ),
    "shared_buffers": point(
        link=LinkSpec(100.0, 10.0, queue_pkts=0, ecn_pkts=20, discipline="shared:buffer_bytes=60000"),
        transport=TransportSpec(2, "lia"),
    ),
    "lossless": point(
        link=LinkSpec(100.0, 10.0, queue_pkts=0, discipline="pfc:xoff_bytes=12000,xon_bytes=9000"),
        transport=TransportSpec(2, "lia"),
    ),
    "detours": point(routing="valiant", transport=TransportSpec(2, "balia")),
    "loops": point(
        workload=WorkloadSpec("closed_loop"),
        transport=dataclasses.replace(TransportSpec(4, "lia"), join_after_bytes=20_000),
        stack=dataclasses.replace(LINUX, receive_buffer=40),
    ),
    "leaves": point(topology=TopologySpec("leaf_spine", {"leaves": 7}), parts=7),
}


@pytest.mark.parametrize("name", CASES)
def test_threads_change_nothing(name: str) -> None:
    found = {
        threads: all_bytes(run(made(CASES[name], threads), SHORT_S, steps=threads))
        for threads in (1, 2, 4, 7)
    }
    hops = int(np.frombuffer(found[1]["hops"], np.int64)[0])
    assert hops > 10_000, "nothing happened"
    for threads in (2, 4, 7):
        differing = [key for key, value in found[1].items() if found[threads][key] != value]
        assert not differing, f"{threads} threads"


def test_it_matters_neither_where_calls_end_nor_what_is_read() -> None:
    at_once = run(made(CASES["mptcp"], 2), SHORT_S)
    looked_at = made(CASES["mptcp"], 2)
    for step in range(1, 101):
        run(looked_at, SHORT_S * step / 100)
        looked_at.queues()
        looked_at.subflows()
    assert all_bytes(looked_at) == all_bytes(at_once)


def test_two_seeds_differ() -> None:
    first, second = (
        all_bytes(run(made(dataclasses.replace(CASES["tcp"], seed=seed), 2), SHORT_S)) for seed in (1, 2)
    )
    assert first["delivered_bytes"] != second["delivered_bytes"]


def test_paths_can_change_between_calls() -> None:
    def moved(threads: int) -> dict[str, bytes]:
        simulation = run(made(CASES["mptcp"], threads), SHORT_S / 2)
        for subflow in range(0, 64, 3):
            simulation.set_path_ranks(subflow, subflow % 4, subflow % 3)
        return all_bytes(run(simulation, SHORT_S))

    assert moved(1) == moved(2) == moved(7)
    assert moved(1) != all_bytes(run(made(CASES["mptcp"], 1), SHORT_S))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_an_error_reaches_the_caller_and_stays(threads: int) -> None:
    few = made(CASES["mptcp"], threads, max_packets=4 * 300)
    with pytest.raises(ValueError, match="every packet descriptor is in use"):
        run(few, SHORT_S)
    with pytest.raises(ValueError, match="every packet descriptor is in use"):
        run(few, 2 * SHORT_S)


def test_threads_wait_between_calls() -> None:
    simulation = made(CASES["tcp"], 4)
    hops = []
    for step in range(1, 6):
        simulation.run_until(step * PS_PER_S // 200)
        hops.append(simulation.hops())
    assert all(earlier < later for earlier, later in pairwise(hops))
