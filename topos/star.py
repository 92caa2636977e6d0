"""A star: n hosts on one switch, the smallest network with a queue."""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

KIND = "star"
MAX_N = 254 * 254


def star(n: int) -> Topology:
    """Return hosts `s1h0` .. `s1h<n-1>` on switch `s1`; n from 2 (checked by `topos.build`).

    Addresses 10.0.x.y with y from 1 to 254. Node order: hosts, switch.
    """
    net = Builder(KIND, {"n": n})
    hosts = [net.host(f"s1h{number}") for number in range(n)]
    switch = net.switch("s1", Layer.EDGE)
    for number, host in enumerate(hosts):
        block, slot = divmod(number, 254)
        net.attach(host, switch, f"10.0.{block}.{slot + 1}")
    return net.build()
