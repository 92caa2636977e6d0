"""The dumbbell: pairs of hosts that share one link in the middle, the setting of fairness experiments.

All links have one rate, so the middle one is the bottleneck as soon as two pairs send; or hosts' links are
`access` times as fast, and it is one for a single pair too. `lanes` are disjoint copies in one network: as
many independent repetitions in one run.
"""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

KIND = "dumbbell"
MAX_PAIRS = 252
MAX_LANES = 254
MAX_ACCESS = 100


def dumbbell(n: int, lanes: int, access: int = 1) -> Topology:
    """`n` pairs a bottleneck, `lanes` bottlenecks, hosts' links of `access` times their rate (ranges checked
    by `topos.build`).

    Lane x has host `lxhy` on switch `lx`, opposite host `rxhy` on switch `rx`, y from 0 to n - 1. Addresses
    10.lane.0.y+2 on the left, 10.lane.1.y+2 on the right. Node order: the lanes' hosts, left before right;
    then their switches.
    """
    net = Builder(KIND, {"n": n, "lanes": lanes, "access": access})
    sides = [f"{side}{lane}" for lane in range(lanes) for side in "lr"]
    hosts = [[net.host(f"{side}h{number}") for number in range(n)] for side in sides]
    switches = [net.switch(side, Layer.EDGE) for side in sides]
    for side, (members, switch) in enumerate(zip(hosts, switches, strict=True)):
        for number, host in enumerate(members):
            net.attach(host, switch, f"10.{side // 2}.{side % 2}.{number + 2}", access)
    for left, right in zip(switches[::2], switches[1::2], strict=True):
        net.link(left, right)
    return net.build()
