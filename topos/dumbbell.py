"""The dumbbell: pairs of hosts that share one link in the middle, for experiments on fairness.

All links have one rate, so the middle link is the bottleneck when two pairs send. If hosts' links are
`access` times as fast, it is the bottleneck for a single pair too. `lanes` is the number of replicas:
disjoint copies in one network, for independent repetitions in one run.
"""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

KIND = "dumbbell"
MAX_PAIRS = 252
MAX_REPLICAS = 254
MAX_ACCESS = 100


def dumbbell(n: int, lanes: int, access: int = 1) -> Topology:
    """Return `lanes` replicas of a bottleneck with `n` pairs; hosts' links are `access` times as fast.

    `topos.build` checks ranges.

    Replica x has host `lxhy` on switch `lx`, opposite host `rxhy` on switch `rx`, y from 0 to n - 1.
    Addresses 10.replica.0.y+2 on the left, 10.replica.1.y+2 on the right. Node order: the hosts of each
    replica, left before right; then the switches.
    """
    net = Builder(KIND, {"n": n, "lanes": lanes, "access": access})
    sides = [f"{side}{replica}" for replica in range(lanes) for side in "lr"]
    hosts = [[net.host(f"{side}h{number}") for number in range(n)] for side in sides]
    switches = [net.switch(side, Layer.EDGE) for side in sides]
    for side, (members, switch) in enumerate(zip(hosts, switches, strict=True)):
        for number, host in enumerate(members):
            net.attach(host, switch, f"10.{side // 2}.{side % 2}.{number + 2}", access)
    for left, right in zip(switches[::2], switches[1::2], strict=True):
        net.link(left, right)
    return net.build()
