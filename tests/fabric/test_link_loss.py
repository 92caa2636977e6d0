"""Random loss as a property of a link: how many packets, which ones, and nothing else changes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from fabric._core import VirtualFabric
from fabric.plan import NetworkPlan
from fabric.readings import Departure
from tests.support.core_networks import TCP, chain, ip

A, B = ip("10.0.0.1"), ip("10.0.0.2")
MS, FOREVER = 1_000_000_000, 10**17
RATE_BPS = 1_000_000
SIZE = 125
"""1 ms at the links' rate."""


def lossy(loss: dict[int, float], seed: int = 1, links: int = 4) -> NetworkPlan:
    """Return a chain whose given ports lose packets; port 2i of link i transmits from A towards B."""
    plan = chain([RATE_BPS] * links, [0] * links, queue_pkts=0)
    probability = np.zeros(2 * links)
    for port, value in loss.items():
        probability[port] = value
    return dataclasses.replace(plan, loss=probability, seed=seed, max_packets=1 << 18)


def log_of(plan: NetworkPlan, packets: int, back: int = 0) -> tuple[list[Departure], VirtualFabric]:
    """Return the departures of packets sent at once from A to B and from B to A, and the fabric."""
    fabric = VirtualFabric(plan)
    for i in range(max(packets, back)):
        if i < packets:
            fabric.inject(0, 0, SIZE, (A, B, TCP, 1000, 80))
        if i < back:
            fabric.inject(0, 1, SIZE, (B, A, TCP, 80, 1000))
    return fabric.run_until(FOREVER), fabric


def lost_at(log: list[Departure], port: int) -> list[int]:
    """Return when packets were lost behind this port, in packet times."""
    return [when // MS for _, where, when, gone, _ in log if gone and where == port]


@pytest.mark.parametrize("loss", [0.0001, 0.01, 0.5])
def test_as_many_are_lost_as_the_probability_says(loss: float) -> None:
    packets = 100_000
    log, fabric = log_of(lossy({2: loss}), packets)
    counters = fabric.counters()
    lost = int(counters["losses"][2])
    assert abs(lost - packets * loss) < 5 * math.sqrt(packets * loss * (1 - loss))
    assert lost == counters["lost"] == counters["losses"].sum() == sum(departure[3] for departure in log)
    assert counters["dropped"] == counters["drops"].sum() == 0
    assert counters["injected"] == packets == counters["delivered"] + lost
    assert counters["in_flight"] == 0


def test_losses_do_not_come_in_a_pattern() -> None:
    """After a loss the next packet is lost as often as any other: pairs are binomial too."""
    packets, loss = 100_000, 0.1
    lost = set(lost_at(log_of(lossy({2: loss}), packets)[0], 2))
    pairs = sum(when + 1 in lost for when in lost)
    expected = packets * loss**2
    assert abs(pairs - expected) < 5 * math.sqrt(expected)


def test_what_is_lost_was_transmitted_and_takes_its_time() -> None:
    """Lost on the wire, not before: the port was as busy as without, and the next packet no earlier."""
    clean, without = log_of(lossy({}), 1000)
    log, fabric = log_of(lossy({2: 0.3}), 1000)
    counters = fabric.counters()
    assert counters["tx_packets"][2] == 1000
    assert counters["tx_bytes"][2] == 1000 * SIZE
    assert counters["max_queue_pkts"].tolist() == without.counters()["max_queue_pkts"].tolist()
    assert counters["tx_packets"][4] == 1000 - counters["lost"]
    arrived = {packet: when for packet, _, when, gone, _ in log if not gone}
    undisturbed = {packet: when for packet, _, when, _, _ in clean}
    assert all(undisturbed[packet] == when for packet, when in arrived.items())


def test_the_same_injections_lose_the_same_packets() -> None:
    plan = lossy({2: 0.1, 5: 0.2})
    assert log_of(plan, 2000, back=2000)[0] == log_of(plan, 2000, back=2000)[0]


def test_another_seed_loses_others() -> None:
    logs = [lost_at(log_of(lossy({2: 0.1}, seed=seed), 2000)[0], 2) for seed in (1, 2)]
    assert logs[0] != logs[1]
    shared = len(set(logs[0]) & set(logs[1]))
    assert abs(shared - 2000 * 0.01) < 5 * math.sqrt(2000 * 0.01)


def test_ports_draw_independently_of_each_other() -> None:
    """Neither traffic nor loss elsewhere, nor further links, change which packets a port loses; and two
    ports lose together as often as independent ones do."""
    alone = lost_at(log_of(lossy({2: 0.1}), 5000)[0], 2)
    both, _ = log_of(lossy({2: 0.1, 5: 0.1}), 5000, back=5000)
    assert lost_at(both, 2) == alone
    assert lost_at(log_of(lossy({2: 0.1}, links=6), 5000)[0], 2) == alone
    first, second = set(alone), set(lost_at(both, 5))
    assert abs(len(first & second) - 50) < 5 * math.sqrt(50)


def test_no_loss_draws_nothing() -> None:
    """Without loss, not a bit differs: not even where other ports do lose."""
    plan = lossy({})
    log, fabric = log_of(plan, 500)
    assert not fabric.counters()["losses"].any()
    assert [departure[2] for departure in log] == [(4 + i) * MS for i in range(500)]
    assert log == log_of(lossy({3: 0.5}), 500)[0]


def test_a_cut_link_is_no_random_loss() -> None:
    fabric = VirtualFabric(lossy({2: 0.5}))
    for _ in range(100):
        fabric.inject(0, 0, SIZE, (A, B, TCP, 1000, 80))
    fabric.set_port_up(2, False, 50 * MS)
    fabric.run_until(FOREVER)
    counters = fabric.counters()
    assert counters["dropped"] == counters["drops"].sum() > 0
    assert counters["lost"] == counters["losses"].sum() > 0
    assert counters["injected"] == counters["delivered"] + counters["dropped"] + counters["lost"]
