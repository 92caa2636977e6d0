"""minTCP, LineRate and hosts that send by rank, where their behaviour can be counted."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fabric._core import Simulation, TransportOptions, disciplines
from fabric.plan import NetworkPlan
from tests.support.simulated_hosts import HEADER, MS, PACKET, PACKET_PS, PAYLOAD, S, network, stack, tcp

RTO_MS = 20
NEVER = 1 << 30


def mintcp(**wanted: Any) -> TransportOptions:
    """Return a stack with timeouts of always 20 ms, probes after five of them, and windows of 12 to 15."""
    timeouts = {"min_rto_ps": RTO_MS * MS, "fixed_rto": True, "probe_after": 5}
    losses = {"dup_threshold": NEVER}
    return stack(**{"initial_window": 12.0, "max_window": 15, **timeouts, **losses, **wanted})


def ranked(plan: NetworkPlan, at: str = "nic_downlink") -> NetworkPlan:
    """Return the same plan with pFabric's discipline in the switch, or at other ports."""
    numbers = plan.discipline.copy()
    numbers[getattr(plan, at)] = disciplines().index("pfabric")
    return dataclasses.replace(plan, discipline=numbers)


def cut(cc: str, until_ms: int, **wanted: Any) -> Simulation:
    """Simulate a flow whose receiver cannot be reached from the start until `until_ms`."""
    simulation = Simulation(network(queue_pkts=0), mintcp(**wanted), [tcp(pkts=40, cc=cc)])
    simulation.set_port_up(3, False, 0)
    simulation.run_until(until_ms * MS)
    return simulation


def test_every_timeout_is_equally_long() -> None:
    simulation = cut("mintcp", 10 * RTO_MS + 5)
    assert int(simulation.subflows()["timeouts"][0]) == 10
    backing_off = cut("mintcp", 10 * RTO_MS + 5, fixed_rto=False, probe_after=0)
    assert int(backing_off.subflows()["timeouts"][0]) <= 4


def test_after_five_timeouts_only_probes_of_one_byte_are_sent() -> None:
    simulation = cut("mintcp", 5 * RTO_MS - 5)
    before = int(simulation.ports()["tx_bytes"][0])
    simulation.run_until((9 * RTO_MS + 5) * MS)
    assert int(simulation.ports()["tx_bytes"][0]) - before == 5 * (HEADER + 1)
    simulation.set_port_up(3, True, (9 * RTO_MS + 5) * MS)
    simulation.run_until(S)
    assert int(simulation.flows()["delivered_bytes"][0]) == 40 * PAYLOAD


def test_a_loss_is_repaired_by_a_timeout_and_never_by_duplicates() -> None:
    lossy = network(loss=0.05)
    simulation = Simulation(lossy, mintcp(), [tcp(pkts=200, cc="mintcp")])
    simulation.run_until(20 * S)
    subflows = simulation.subflows()
    assert int(simulation.flows()["delivered_bytes"][0]) == 200 * PAYLOAD
    assert int(subflows["timeouts"][0]) > 0
    duplicates = Simulation(lossy, mintcp(dup_threshold=3), [tcp(pkts=200, cc="mintcp")])
    duplicates.run_until(20 * S)
    assert int(duplicates.subflows()["timeouts"][0]) < int(subflows["timeouts"][0])


def test_the_window_grows_to_its_limit() -> None:
    simulation = Simulation(network(), mintcp(), [tcp(cc="mintcp")])
    simulation.run_until(S)
    assert float(simulation.subflows()["window_pkts"][0]) == 15


def test_line_rate_keeps_its_window_whatever_is_lost() -> None:
    simulation = Simulation(network(loss=0.05), mintcp(max_window=0), [tcp(cc="linerate")])
    simulation.run_until(5 * S)
    subflows = simulation.subflows()
    assert int(subflows["timeouts"][0]) > 10
    assert float(subflows["window_pkts"][0]) == 12


@pytest.mark.parametrize(
    ("connections", "start_ps", "goes_on"),
    [("new", S, False), ("persistent", S, True), ("persistent", MS, False)],
)
def test_a_flow_on_an_idle_persistent_connection_goes_on_with_its_window(
    connections: str, start_ps: int, goes_on: bool
) -> None:
    """Flows at the same time have connections of their own."""
    options = stack(connections=connections, initial_window=2.0)
    flows = [tcp(pkts=100), tcp(pkts=100, start_ps=start_ps)]
    simulation = Simulation(network(delay_ps=5 * MS), options, flows)
    simulation.run_until(start_ps)
    reached = float(simulation.subflows()["window_pkts"][0])
    simulation.run_until(start_ps + 1)
    assert (reached > 20) == (start_ps == S)
    assert float(simulation.subflows()["window_pkts"][1]) == (reached if goes_on else 2)


def _short_beside_long(**wanted: Any) -> float:
    """Return the completion time of 5 packets, in packet times, beside a long flow from the same host."""
    flows = [
        tcp([(0, 1)], pkts=400, cc="mintcp"),
        tcp([(0, 2)], pkts=5, start_ps=50 * PACKET_PS, cc="mintcp"),
    ]
    options = mintcp(initial_window=100.0, max_window=0, nic_queue_pkts=1, min_rto_ps=10 * S, **wanted)
    simulation = Simulation(ranked(network(3, queue_pkts=0)), options, flows)
    simulation.run_until(5 * S)
    readings = simulation.flows()
    return float(readings["completed_ps"][1] - readings["started_ps"][1]) / PACKET_PS


def test_the_sender_with_the_least_to_send_goes_next() -> None:
    alone = 5 + 1  # all five on one link, the last on the next
    assert alone <= _short_beside_long(smallest_first=True) <= alone + 1
    assert _short_beside_long(smallest_first=False) >= 2 * 5


@pytest.mark.parametrize(("rank", "first"), [("remaining", 1), ("sent", 0)])
def test_a_rank_is_what_remains_or_what_was_sent(rank: str, first: int) -> None:
    """A flow has sent 200 of its 300 packets when one of 150 begins: by what remains, the old is first."""
    flows = [
        tcp([(0, 2)], pkts=300, cc="linerate"),
        tcp([(1, 2)], pkts=150, start_ps=200 * PACKET_PS, cc="linerate"),
    ]
    options = mintcp(initial_window=20.0, max_window=0, rank=rank, min_rto_ps=10 * S)
    simulation = Simulation(ranked(network(3, queue_pkts=0)), options, flows)
    simulation.run_until(10 * S)
    completed = np.asarray(simulation.flows()["completed_ps"])
    assert (int(np.argmax(completed)) == first) and completed.max() >= (450 * PACKET * 8 * S) // 10_000_000


def test_waiting_senders_need_a_host_queue_whose_departures_are_known() -> None:
    plan = ranked(network(), "nic_uplink")
    with pytest.raises(ValueError, match="FIFO"):
        Simulation(plan, stack(), [tcp(pkts=1)])
    dropping = Simulation(plan, stack(nic_queue_pkts=2**32 - 1), [tcp(pkts=50)])
    dropping.run_until(S)
    assert int(dropping.flows()["delivered_bytes"][0]) == 50 * PAYLOAD


@pytest.mark.parametrize("window", [8, 12, 15])
def test_a_small_flow_does_not_starve_behind_acknowledgements_at_the_instant_of_departures(
    window: int,
) -> None:
    """A long flow's ACKs come as far apart as its packets leave, at the same instants once its queue has set
    their pace. A flow of one packet, whenever it begins, waits for one packet at most."""
    plan = ranked(network(3, delay_ps=5 * MS, queue_pkts=0))
    starts = [(50 + 20 * i) * PACKET_PS + i * PACKET_PS // 40 for i in range(40)]
    small = [tcp([(0, 2)], pkts=1, start_ps=start, cc="mintcp") for start in starts]
    options = mintcp(max_window=window, nic_queue_pkts=1, min_rto_ps=S, smallest_first=True)
    simulation = Simulation(plan, options, [tcp([(0, 1)], pkts=3000, cc="mintcp"), *small])
    simulation.run_until(20 * S)
    readings = simulation.flows()
    took = np.asarray(readings["completed_ps"] - readings["started_ps"])[1:]
    alone = 2 * (PACKET_PS + 5 * MS)
    assert alone <= took.min() and took.max() <= alone + PACKET_PS
