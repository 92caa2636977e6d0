"""Small hand-made networks for tests of the core."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fabric.plan import NetworkPlan
from model.network_plan import QUEUE_NUMBERS

TCP = 6
BOTTLENECK = 5
"""The downlink of the last of three hosts on one switch."""


def ip(text: str) -> int:
    return int(ipaddress.IPv4Address(text))


def one_switch(
    hosts: int = 2,
    rate_bps: int = 10_000_000,
    delay_ps: int = 0,
    queue_pkts: int = 100,
    queue_bytes: int = 0,
    ecn_pkts: int = 0,
) -> NetworkPlan:
    """Hosts 0..n-1 (10.0.0.1 ...) on one switch (node n). Host i's uplink is port 2i, its downlink 2i+1."""
    ports = 2 * hosts
    far = [node for i in range(hosts) for node in (hosts, i)]
    return NetworkPlan(
        rate_bps=np.full(ports, rate_bps, np.int64),
        delay_ps=np.full(ports, delay_ps, np.int64),
        queue_pkts=np.full(ports, queue_pkts, np.uint32),
        queue_bytes=np.full(ports, queue_bytes, np.uint64),
        loss=np.zeros(ports),
        admission={"ecn_pkts": np.full(ports, float(ecn_pkts))},
        discipline=np.zeros(ports, np.uint8),
        far_node=np.array(far, np.uint32),
        nic_ip=np.array([ip("10.0.0.1") + i for i in range(hosts)], np.uint32),
        nic_attach_node=np.full(hosts, hosts, np.uint32),
        nic_attach=np.zeros(hosts, np.uint32),
        nic_uplink=np.arange(0, ports, 2, dtype=np.uint32),
        nic_downlink=np.arange(1, ports, 2, dtype=np.uint32),
        attachments=1,
        fib=np.full(hosts + 1, -1, np.int32),
        group_offsets=np.zeros(1, np.uint32),
        member_port=np.zeros(0, np.uint32),
        member_paths=np.zeros(0, np.uint32),
        policy="hashed",
        seed=1,
        max_packets=4096,
    )


def with_setting(plan: NetworkPlan, name: str, port: int, number: float) -> NetworkPlan:
    """Return the plan with another setting of an on-arrival discipline at one port."""
    column = np.array(plan.admission.get(name, np.zeros(len(plan.rate_bps))))
    column[port] = number
    return replace(plan, admission={**plan.admission, name: column})


def chain(rates_bps: Sequence[int], delays_ps: Sequence[int], queue_pkts: int = 100) -> NetworkPlan:
    """One host at each end of a line of switches: link i joins node i and node i + 1.

    Port 2i transmits rightwards on link i, port 2i+1 leftwards; node 0 is host 10.0.0.1, the last 10.0.0.2.
    """
    links = len(rates_bps)
    last = links
    fib = np.full((links + 1, 2), -1, np.int32)  # column 0: towards node 1, column 1: towards node last-1
    offsets: list[int] = [0]
    member_port: list[int] = []
    for node in range(1, last):
        for column, port, target in ((0, 2 * (node - 1) + 1, 1), (1, 2 * node, last - 1)):
            if node != target:
                fib[node, column] = len(member_port)
                member_port.append(port)
                offsets.append(len(member_port))
    return NetworkPlan(
        rate_bps=np.repeat(np.array(rates_bps, np.int64), 2),
        delay_ps=np.repeat(np.array(delays_ps, np.int64), 2),
        queue_pkts=np.full(2 * links, queue_pkts, np.uint32),
        queue_bytes=np.zeros(2 * links, np.uint64),
        loss=np.zeros(2 * links),
        admission={},
        discipline=np.zeros(2 * links, np.uint8),
        far_node=np.array([n for i in range(links) for n in (i + 1, i)], np.uint32),
        nic_ip=np.array([ip("10.0.0.1"), ip("10.0.0.2")], np.uint32),
        nic_attach_node=np.array([1, last - 1], np.uint32),
        nic_attach=np.array([0, 1], np.uint32),
        nic_uplink=np.array([0, 2 * (links - 1) + 1], np.uint32),
        nic_downlink=np.array([1, 2 * (links - 1)], np.uint32),
        attachments=2,
        fib=fib.ravel(),
        group_offsets=np.array(offsets, np.uint32),
        member_port=np.array(member_port, np.uint32),
        member_paths=np.ones(len(member_port), np.uint32),
        policy="hashed",
        seed=1,
        max_packets=4096,
    )


def bottleneck(discipline: str, rates_bps: tuple[int, int], **limits: int) -> NetworkPlan:
    """Two hosts on links of the first rate send to a third on one of the second. Its port, number
    `BOTTLENECK`, has the discipline and these limits and settings; other queues have no limit."""
    plan = one_switch(hosts=3, queue_pkts=0, rate_bps=rates_bps[0])
    changed = {"rate_bps": rates_bps[1], "discipline": QUEUE_NUMBERS[discipline]}
    for name, number in limits.items():
        if name in ("queue_pkts", "queue_bytes"):
            changed[name] = number
        else:
            plan = with_setting(plan, name, BOTTLENECK, number)
    columns = {name: getattr(plan, name).copy() for name in changed}
    for name, number in changed.items():
        columns[name][BOTTLENECK] = number
    return replace(plan, **columns)
