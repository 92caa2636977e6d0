"""The k-ary FatTree of Al-Fares et al. (SIGCOMM 2008, section 2.2), as in the MPTCP paper (SIGCOMM 2011).

It has k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, and k/2 hosts per edge switch.
That makes k^3/4 hosts; every switch has k ports, and there are as many links between any two layers.

A FatTree with oversubscription n:1 has n times as many hosts below every edge switch and the same uplinks.
The MPTCP paper runs short flows on a 4:1 FatTree of 512 hosts, which is k=8 with 4 times the hosts.
"""

from __future__ import annotations

from common.errors import UsageError
from topos.topology import Builder, Layer, Topology

KIND = "fat_tree"
MAX_K = 254
"""A pod's number must fit in one octet of the address 10.pod.edge.host+2."""
MAX_BELOW = 252
"""Maximum number of hosts below an edge switch, numbered in another octet."""


def links(k: int, oversubscription: int = 1) -> int:
    """Return the number of links. Raises UsageError if an edge switch has more hosts than addresses."""
    below = k // 2 * oversubscription
    if below > MAX_BELOW:
        raise UsageError(
            f"topology {KIND}: k={k}, oversubscription={oversubscription} has {below} hosts per edge switch, "
            f"but there are addresses for {MAX_BELOW} only: choose a smaller one"
        )
    return k**3 // 4 * (oversubscription + 2)


def fat_tree(k: int, oversubscription: int = 1) -> Topology:
    """Return a FatTree of k-port switches; k even, 4..254 (checked by `topos.build`).

    Names: host `p0e1h2`, edge `p0e1`, aggregation `p0a1`, core `c3`. Addresses 10.pod.edge.host+2 (the
    paper leaves .1 to the switch). Aggregation switch j of every pod reaches cores j*k/2 .. (j+1)*k/2-1,
    so there are k^2/4 shortest paths between pods, k/2 within a pod, 1 below one edge switch.
    Node order: hosts, edge, aggregation, core.
    """
    half, below = k // 2, k // 2 * oversubscription
    net = Builder(KIND, {"k": k, "oversubscription": oversubscription})
    hosts = [net.host(f"p{p}e{e}h{h}") for p in range(k) for e in range(half) for h in range(below)]
    edges = [net.switch(f"p{p}e{e}", Layer.EDGE) for p in range(k) for e in range(half)]
    aggs = [net.switch(f"p{p}a{a}", Layer.AGG) for p in range(k) for a in range(half)]
    cores = [net.switch(f"c{c}", Layer.CORE) for c in range(half * half)]
    for number, host in enumerate(hosts):
        edge, slot = divmod(number, below)
        net.attach(host, edges[edge], f"10.{edge // half}.{edge % half}.{slot + 2}")
    for pod in range(k):
        in_pod = slice(pod * half, (pod + 1) * half)
        for edge_switch in edges[in_pod]:
            for agg in aggs[in_pod]:
                net.link(edge_switch, agg)
        for position, agg in enumerate(aggs[in_pod]):
            for core in cores[position * half : (position + 1) * half]:
                net.link(agg, core)
    return net.build()
