"""Sources of constant rate, to the packet."""

from __future__ import annotations

import pytest

from fabric._core import Datagrams, Simulation
from tests.support.simulated_hosts import (
    MS,
    PACKET,
    PACKET_PS,
    PAYLOAD,
    RATE_BPS,
    S,
    network,
    stack,
    tcp,
    with_rate,
)


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


def test_below_the_links_rate_every_packet_arrives() -> None:
    simulation = Simulation(network(), stack(), [], [source(RATE_BPS // 2, packets=1000)])
    simulation.run_until(10 * S)
    readings = simulation.datagrams()
    counts = [int(readings[name][0]) for name in ("sent_pkts", "refused_pkts", "received_pkts")]
    assert counts == [1000, 0, 1000]
    assert simulation.descriptors_in_use() == 0


def test_above_it_the_hosts_queue_takes_what_the_link_carries() -> None:
    simulation = Simulation(network(), stack(), [], [source(2 * RATE_BPS)])
    simulation.run_until(10 * S)
    readings = simulation.datagrams()
    carried = 10 * S // PACKET_PS
    assert int(readings["received_pkts"][0]) == pytest.approx(carried, abs=2)
    assert int(readings["sent_pkts"][0]) == pytest.approx(carried + 100, abs=2)


def test_tcp_beside_it_has_the_rest() -> None:
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
