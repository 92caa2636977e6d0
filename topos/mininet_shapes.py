"""Mininet's own topologies, `single,3`, `linear,4` and `tree,2`, with its names, addresses and port numbers.

Programs written for `mn --topo` therefore find h1, s1, 10.0.0.1 and s1-eth1 where they expect them. Source:
Mininet's modules topo and topolib.
"""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

SINGLE, LINEAR, TREE = "single", "linear", "tree"
MAX_HOSTS, MAX_SWITCHES, MAX_DEPTH, MAX_FANOUT = 4096, 1024, 8, 256


def single(k: int) -> Topology:
    """Return one switch `s1` with hosts `h1` to `hk`."""
    net = Builder(SINGLE, {"k": k})
    hosts = [net.host(f"h{number}") for number in range(1, k + 1)]
    switch = net.switch("s1", Layer.EDGE)
    for number, host in enumerate(hosts, 1):
        net.attach(host, switch, address(number))
    return net.build()


def linear(k: int, n: int) -> Topology:
    """Return switches `s1` to `sk` in a row with `n` hosts each.

    They are called `h1` to `hk` if n is 1, else `h<j>s<i>`.
    """
    net = Builder(LINEAR, {"k": k, "n": n})
    places = [(i, j) for i in range(1, k + 1) for j in range(1, n + 1)]
    hosts = [net.host(f"h{i}" if n == 1 else f"h{j}s{i}") for i, j in places]
    switches = [net.switch(f"s{i}", Layer.EDGE) for i in range(1, k + 1)]
    for number, (host, (i, j)) in enumerate(zip(hosts, places, strict=True), 1):
        net.attach(host, switches[i - 1], address(number))
        if j == n and i > 1:
            net.link(switches[i - 1], switches[i - 2])
    return net.build()


def tree(depth: int, fanout: int) -> Topology:
    """Return a tree of `depth` levels of switches with `fanout` children each, the lowest of which are hosts.

    Numbers count in depth-first order: `s1` is the root.
    """
    net = Builder(TREE, {"depth": depth, "fanout": fanout})
    hosts = iter([net.host(f"h{number}") for number in range(1, fanout**depth + 1)])
    made = {"hosts": 0, "switches": 0}

    def subtree(height: int) -> int:
        made["switches"] += 1
        switch = net.switch(f"s{made['switches']}", Layer(min(height, Layer.CORE)))
        for _ in range(fanout):
            if height == 1:
                made["hosts"] += 1
                net.attach(next(hosts), switch, address(made["hosts"]))
            else:
                net.link(subtree(height - 1), switch)
        return switch

    subtree(depth)
    return net.build()


def tree_links(depth: int, fanout: int) -> int:
    """Return the number of links of a tree: every node but the root has one upwards."""
    return sum(fanout**level for level in range(1, depth + 1))


def address(number: int) -> str:
    """Return the address of host `number` from 1: 10.0.0.1 to 10.0.0.254, then 10.0.1.1 and so on."""
    block, slot = divmod(number - 1, 254)
    return f"10.{block // 256}.{block % 256}.{slot + 1}"
