"""What senders do beside TCP's window: data schedulers, constant rates, pFabric's minimal TCP."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fabric._core import Datagrams, Simulation, TransportOptions, schedulers
from fabric.plan import NetworkPlan
from model.network_plan import QUEUE_NUMBERS
from tests.support.simulated_hosts import (
    HEADER,
    MS,
    PACKET,
    PACKET_PS,
    PAYLOAD,
    RATE_BPS,
    TWO_PATHS,
    S,
    network,
    stack,
    tcp,
    with_delay,
    with_rate,
)


def carried(simulation: Simulation) -> list[int]:
    return [int(n) for n in simulation.subflows()["acked_pkts"]]


def test_where_the_send_buffer_is_the_limit_the_faster_path_is_taken_first() -> None:
    plan = with_delay(network(4), {1: 50 * MS, 3: 50 * MS})
    shares = {}
    for name in ("min_rtt", "round_robin"):
        simulation = Simulation(plan, stack(send_buffer=8, scheduler=name), [tcp(TWO_PATHS)])
        simulation.run_until(20 * S)
        fast, slow = carried(simulation)
        shares[name] = fast / (fast + slow)
    assert shares["min_rtt"] > 0.9
    assert shares["round_robin"] < 0.7


@pytest.mark.parametrize("name", schedulers())
def test_without_limits_every_path_is_filled(name: str) -> None:
    plan = with_rate(network(4, delay_ps=MS), {1: RATE_BPS // 4, 3: RATE_BPS // 4})
    simulation = Simulation(plan, stack(scheduler=name), [tcp(TWO_PATHS)])
    simulation.run_until(5 * S)
    before = carried(simulation)
    simulation.run_until(15 * S)
    fast, slow = (now - then for now, then in zip(carried(simulation), before, strict=True))
    assert fast == pytest.approx(10 * S / PACKET_PS, rel=0.02)
    assert slow == pytest.approx(10 * S / PACKET_PS / 4, rel=0.02)


def test_a_burst_goes_to_the_subflow_that_sends_it_soonest_and_stays_there() -> None:
    """45 segments are bound to the first, whatever its window, the next 45 to the other."""
    options = stack(scheduler="burst", subflow_buffer=0, initial_window=20.0)
    simulation = Simulation(network(4), options, [tcp(TWO_PATHS, pkts=90)])
    simulation.run_until(10 * S)
    assert int(simulation.flows()["delivered_bytes"][0]) == 90 * PAYLOAD
    whole = 65428 // PAYLOAD
    done = Simulation(network(4), options, [tcp(TWO_PATHS, pkts=whole)])
    done.run_until(whole * PACKET_PS // 2)
    assert carried(done)[1] == 0


@pytest.mark.parametrize("name", schedulers())
@pytest.mark.parametrize("subflows", [1, 2])
def test_a_receive_buffer_bounds_goodput_by_one_buffer_per_round_trip(name: str, subflows: int) -> None:
    """20 segments in at least 4 x 25 ms: 200 a second, at whatever rate."""
    plan = network(4, delay_ps=25 * MS)
    options = stack(receive_buffer=20, scheduler=name)
    simulation = Simulation(plan, options, [tcp(TWO_PATHS[:subflows])])
    simulation.run_until(10 * S)
    segments = int(simulation.flows()["delivered_bytes"][0]) / PAYLOAD
    assert 0.9 * 10 / (0.1 + 2 * PACKET_PS / S * 2) * 20 * 0.8 < segments <= 10 / 0.1 * 20


@pytest.mark.parametrize("name", schedulers())
def test_a_path_that_dies_holds_a_connection_up_for_its_timeout_and_no_longer(name: str) -> None:
    simulation = Simulation(network(4, delay_ps=MS), stack(scheduler=name), [tcp(TWO_PATHS)])
    simulation.run_until(5 * S)
    simulation.set_port_up(2 * 3 + 1, False, 5 * S)
    last, longest, stalled_since = -1, 0, 5 * S
    for now in range(5 * S, 15 * S, 10 * MS):
        simulation.run_until(now)
        delivered = int(simulation.flows()["delivered_bytes"][0])
        if delivered != last:
            longest, stalled_since, last = max(longest, now - stalled_since), now, delivered
    # The smoothed round-trip time of a full queue (0.12 s) and its spread, or 200 ms, once.
    assert longest < 700 * MS
    alone = int(simulation.flows()["delivered_bytes"][0])
    simulation.run_until(20 * S)
    rate = (int(simulation.flows()["delivered_bytes"][0]) - alone) / PAYLOAD / 5
    assert rate == pytest.approx(S / PACKET_PS, rel=0.05)


def test_a_dead_path_without_reinjection_stops_the_connection() -> None:
    simulation = Simulation(network(4, delay_ps=MS), stack(reinject=False), [tcp(TWO_PATHS)])
    simulation.run_until(5 * S)
    simulation.set_port_up(2 * 3 + 1, False, 5 * S)
    simulation.run_until(6 * S)
    stuck = int(simulation.flows()["delivered_bytes"][0])
    simulation.run_until(20 * S)
    assert int(simulation.flows()["delivered_bytes"][0]) == stuck


def test_what_another_subflow_has_carried_is_not_carried_twice() -> None:
    """The other subflow reinjects the dead path's window once; its own timer adds one segment at a time."""
    simulation = Simulation(network(4, delay_ps=MS), stack(), [tcp(TWO_PATHS, pkts=3000)])
    simulation.run_until(S)
    simulation.set_port_up(2 * 3 + 1, False, S)
    simulation.run_until(S + 180 * MS)  # before the first timeout, after the last acknowledgement
    given = int(simulation.subflows()["unacked_pkts"][1])
    simulation.run_until(60 * S)
    subflows = simulation.subflows()
    assert int(simulation.flows()["delivered_bytes"][0]) == 3000 * PAYLOAD
    by_first = int(subflows["acked_pkts"][0])
    by_second = int(subflows["acked_pkts"][1])
    assert by_first + by_second <= 3000 + given + int(subflows["timeouts"][1])
    assert simulation.descriptors_in_use() == 0


def source(rate_bps: int, packets: int = 0, start_ps: int = 0, nics: tuple[int, int] = (0, 1)) -> Datagrams:
    return Datagrams(rate_bps=rate_bps, packets=packets, start_ps=start_ps, path=(*nics, 7, 7))


def test_the_nth_packet_leaves_n_intervals_after_the_first() -> None:
    rate = 3_000_000
    simulation = Simulation(network(), stack(), [], [source(rate, start_ps=5 * MS)])
    for n in (0, 1, 2, 17, 100):
        due = 5 * MS + n * PACKET * 8 * S // rate
        simulation.run_until(due - 1)
        assert int(simulation.datagrams()["sent_pkts"][0]) == n
        simulation.run_until(due + 1)
        assert int(simulation.datagrams()["sent_pkts"][0]) == n + 1


def test_below_the_links_rate_every_datagram_arrives() -> None:
    simulation = Simulation(network(), stack(), [], [source(RATE_BPS // 2, packets=1000)])
    simulation.run_until(10 * S)
    readings = simulation.datagrams()
    counts = [int(readings[name][0]) for name in ("sent_pkts", "refused_pkts", "received_pkts")]
    assert counts == [1000, 0, 1000]
    assert simulation.descriptors_in_use() == 0


def test_above_the_links_rate_the_hosts_queue_takes_what_the_link_carries() -> None:
    simulation = Simulation(network(), stack(), [], [source(2 * RATE_BPS)])
    simulation.run_until(10 * S)
    readings = simulation.datagrams()
    carried = 10 * S // PACKET_PS
    assert int(readings["received_pkts"][0]) == pytest.approx(carried, abs=2)
    assert int(readings["sent_pkts"][0]) == pytest.approx(carried + 100, abs=2)


def test_tcp_beside_a_constant_rate_has_the_rest() -> None:
    """Uplinks are faster than the link both share: else TCP's packets come just when a place becomes free,
    and the other's never do (phase effects: Floyd and Jacobson, 1992)."""
    plan = with_rate(network(3, delay_ps=MS), {0: 10 * RATE_BPS, 1: 10 * RATE_BPS})
    simulation = Simulation(plan, stack(), [tcp([(0, 2)])], [source(RATE_BPS * 3 // 10, nics=(1, 2))])
    simulation.run_until(5 * S)
    tcp_before = int(simulation.flows()["delivered_bytes"][0]) // PAYLOAD
    udp_before = int(simulation.datagrams()["received_pkts"][0])
    simulation.run_until(45 * S)
    by_tcp = int(simulation.flows()["delivered_bytes"][0]) // PAYLOAD - tcp_before
    by_udp = int(simulation.datagrams()["received_pkts"][0]) - udp_before
    whole = 40 * S / PACKET_PS
    assert by_udp == pytest.approx(0.3 * whole, rel=0.02)
    assert by_tcp + by_udp == pytest.approx(whole, rel=0.01)


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0 bit/s"):
        Simulation(network(), stack(), [], [source(0)])


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
    numbers[getattr(plan, at)] = QUEUE_NUMBERS["pfabric"]
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


def test_senders_wait_for_a_host_queue_that_chooses_when_it_sends() -> None:
    plan = ranked(network(), "nic_uplink")
    limits = plan.queue_pkts.copy()
    limits[plan.nic_uplink] = 3
    drops = {}
    for waits_at in (2, 2**32 - 1):
        options = stack(nic_queue_pkts=waits_at, initial_window=40.0, max_window=0)
        simulation = Simulation(dataclasses.replace(plan, queue_pkts=limits), options, [tcp(pkts=50)])
        simulation.run_until(5 * S)
        assert int(simulation.flows()["delivered_bytes"][0]) == 50 * PAYLOAD
        drops[waits_at] = int(simulation.ports()["drops"][plan.nic_uplink[0]])
    assert drops[2] == 0 and drops[2**32 - 1] >= 40 - 3


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
