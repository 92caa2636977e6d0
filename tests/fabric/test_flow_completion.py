"""When simulated flows start and are done, to the picosecond, against arithmetic by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engines.core_setup import ideal_s
from fabric._core import Flow, Simulation, TransportOptions
from tests.support import simulated_hosts
from tests.support.core_networks import one_switch

RATE_BPS = 10_000_000
DELAY_PS = 7_000_000
PS_PER_BYTE = 8 * 10**12 // RATE_BPS
FULL, ACK = 1448 + 66, 66
NEVER = 2**63 - 1
SECOND = 10**12


def stack(**changes: object) -> TransportOptions:
    return simulated_hosts.stack(payload_bytes=1448, header_bytes=66, ack_bytes=ACK, **changes)


def flow(
    size: int, start_ps: int = 0, after: int | None = None, ends: tuple[int, int] = (0, 1), subflows: int = 1
) -> Flow:
    paths = [(*ends, 7 + i, 8 + i) for i in range(subflows)]
    return Flow(subflows=paths, cc="reno", size_bytes=size, start_ps=start_ps, after=after)


def simulate(flows: Sequence[Flow], until_ps: int = 100 * SECOND, **changes: object) -> Simulation:
    plan = one_switch(4, RATE_BPS, DELAY_PS, queue_pkts=0)
    simulation = Simulation(plan, stack(**changes), flows)
    simulation.run_until(until_ps)
    return simulation


def completed_ps(simulation: Simulation) -> list[int]:
    times: list[int] = simulation.flows()["completed_ps"].tolist()
    return times


@pytest.mark.parametrize("size", [1, 1000, 1448])
def test_one_packet_is_stored_and_forwarded_at_every_hop(size: int) -> None:
    done = completed_ps(simulate([flow(size, start_ps=123_457)]))
    assert done == [123_457 + 2 * ((size + 66) * PS_PER_BYTE + DELAY_PS)]


def test_a_window_of_packets_follows_the_first_back_to_back() -> None:
    """Ten packets, the last of 100 bytes, all within the initial window."""
    done = completed_ps(simulate([flow(9 * 1448 + 100)]))
    expected = 2 * (FULL * PS_PER_BYTE + DELAY_PS) + (8 * FULL + 166) * PS_PER_BYTE
    assert done == [expected]


def test_slow_start_takes_a_round_trip_for_every_doubling() -> None:
    """Windows of 1, 2, 4 and 8 on a path that none of them fills; the last round sends 3 of its 8."""
    rounds, last = 3, 3
    far = 50_000_000_000
    plan = one_switch(2, RATE_BPS, far, queue_pkts=0)
    simulation = Simulation(plan, stack(initial_window=1.0), [flow((1 + 2 + 4 + last) * 1448)])
    simulation.run_until(10 * SECOND)
    way_out = 2 * (FULL * PS_PER_BYTE + far)
    round_trip = way_out + 2 * (ACK * PS_PER_BYTE + far)
    assert completed_ps(simulation) == [rounds * round_trip + way_out + (last - 1) * FULL * PS_PER_BYTE]


def test_a_flow_within_its_window_takes_the_ideal_time() -> None:
    plan = one_switch(2, RATE_BPS, DELAY_PS, queue_pkts=0)
    for size in (1, 1448, 1449, 14_000):
        simulation = Simulation(plan, stack(), [flow(size)])
        simulation.run_until(SECOND)
        best = ideal_s(size, simulation.path(0), plan, stack())
        assert completed_ps(simulation) == [round(best * SECOND)]


def test_a_large_flow_comes_close_to_the_ideal_time() -> None:
    plan = one_switch(2, RATE_BPS, DELAY_PS, queue_pkts=0)
    simulation = simulate([flow(5_000_000)], nic_queue_pkts=100)
    best = ideal_s(5_000_000, simulation.path(0), plan, stack())
    assert best <= completed_ps(simulation)[0] / SECOND < 1.001 * best


def test_flows_start_at_their_times_in_any_order() -> None:
    starts = [3_000_000_000, 1_000_000_000, 1_000_000_000, 0]
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0)]
    flows = [flow(500, start, ends=ends) for start, ends in zip(starts, pairs, strict=True)]
    simulation = simulate(flows)
    assert simulation.flows()["started_ps"].tolist() == starts
    taken = 2 * (566 * PS_PER_BYTE + DELAY_PS)
    assert completed_ps(simulation) == [start + taken for start in starts]


def test_a_flow_that_has_not_started_has_sent_nothing() -> None:
    simulation = simulate([flow(500, start_ps=2 * SECOND)], until_ps=2 * SECOND - 1)
    assert simulation.ports()["injected"] == 0
    assert simulation.flows()["started_ps"].tolist() == completed_ps(simulation) == [NEVER]


def test_a_follower_starts_a_pause_after_the_last_acknowledgement() -> None:
    pause = 55_555
    simulation = simulate(
        [flow(1000, 777), flow(2000, pause, after=0, ends=(0, 2)), flow(10, pause, after=1)]
    )
    one_way = 2 * (1066 * PS_PER_BYTE + DELAY_PS)
    back = 2 * (ACK * PS_PER_BYTE + DELAY_PS)
    second = 777 + one_way + back + pause
    done = second + 2 * (FULL * PS_PER_BYTE + DELAY_PS) + (552 + 66) * PS_PER_BYTE
    assert simulation.flows()["started_ps"].tolist()[:2] == [777, second]
    assert completed_ps(simulation)[1] == done
    assert simulation.flows()["started_ps"].tolist()[2] == done + back + pause


@pytest.mark.parametrize(
    ("after", "why"), [((1,), "comes later"), ((5,), "comes later"), ((0, 0), "same one")]
)
def test_a_flow_waits_for_an_earlier_one_that_has_no_other_follower(after: tuple[int, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        simulate([flow(10), *(flow(10, after=other) for other in after)])


@pytest.mark.parametrize("subflows", [1, 3])
def test_nothing_is_sent_once_a_flow_is_done(subflows: int) -> None:
    """Not even by subflows whose segments were lost and arrived over others."""
    plan = one_switch(3, RATE_BPS, DELAY_PS, queue_pkts=5)
    flows = [flow(400_000, ends=(source, 2), subflows=subflows) for source in (0, 1)]
    simulation = Simulation(plan, stack(), flows)
    simulation.run_until(10 * SECOND)
    done = max(completed_ps(simulation))
    assert done < 10 * SECOND
    assert simulation.ports()["drops"].sum() > 0
    sent = simulation.ports()["injected"]
    simulation.run_until(200 * SECOND)
    assert simulation.ports()["injected"] == sent
    assert simulation.subflows()["unacked_pkts"].tolist() == [0] * 2 * subflows


def test_thousands_of_flows_take_turns() -> None:
    """Flows of one packet, one at a time: earlier flows change nothing for later ones."""
    flows = [flow(100, n * 1_000_000_000) for n in range(5000)]
    simulation = simulate(flows)
    taken = 2 * (166 * PS_PER_BYTE + DELAY_PS)
    assert completed_ps(simulation) == [n * 1_000_000_000 + taken for n in range(5000)]
    assert simulation.ports()["injected"] == 10_000


@pytest.mark.parametrize("far_ps", [7_000_000, 60_000_000_000, SECOND])
def test_the_first_timeout_is_what_a_handshake_makes_it(far_ps: int) -> None:
    """A whole first window is lost: RFC 6298's 3 R, where R is the handshake's round trip, within bounds."""
    min_rto_ps = 10**10
    plan = one_switch(2, RATE_BPS, far_ps, queue_pkts=0)
    simulation = Simulation(plan, stack(min_rto_ps=min_rto_ps), [flow(1000)])
    simulation.set_port_up(3, False, 0)
    round_trip = 4 * (ACK * PS_PER_BYTE + far_ps)
    rto = max(min_rto_ps, min(3 * round_trip, SECOND))
    simulation.run_until(rto - 1)
    assert simulation.subflows()["retransmits"].tolist() == [0]
    simulation.run_until(rto)
    assert simulation.subflows()["retransmits"].tolist() == [1]
