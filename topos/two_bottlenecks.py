"""Two bottlenecks side by side, and a pair of hosts with a NIC at each: does traffic leave the worse one?

Besides the dual-homed pair each bottleneck has its own pairs, `first` and `second` of them. All links have
one rate. `lanes` is the number of replicas: disjoint copies in one network, for independent repetitions.
"""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

KIND = "two_bottlenecks"
MAX_COMPETITORS = 251
MAX_REPLICAS = 127
_DUAL_HOMED = "h0"


def two_bottlenecks(first: int, second: int, lanes: int) -> Topology:
    """Return `first` and `second` single-homed pairs beside the dual-homed pair; see `topos.build`.

    Replica x has bottleneck a between switches `lxa` and `rxa`, and b between `lxb` and `rxb`. Host `lxh0`
    has its first NIC at `lxa` and its second at `lxb`; its opposite host is `rxh0`. Hosts `lxahy` and
    `lxbhy`, y from 1, have one NIC. Addresses are 10.2 replica + bottleneck.0 on the left, .1 on the right.
    Paths exist only between NICs of the same bottleneck. Node order: per replica the left hosts with the
    dual-homed one first, then the right hosts with the dual-homed one last, so that a replica's first and
    last host are joined; then the switches.
    """
    net = Builder(KIND, {"first": first, "second": second, "lanes": lanes})
    sides = [f"{side}{replica}" for replica in range(lanes) for side in "lr"]
    names = [(f"{b}h{y}", (b,)) for b, count in (("a", first), ("b", second)) for y in range(1, count + 1)]
    members = [(_DUAL_HOMED, ("a", "b")), *names]
    hosts = {
        (side, name): net.host(f"{side}{name}")
        for side in sides
        for name, _ in (members if side.startswith("l") else reversed(members))
    }
    switches = {(side, b): net.switch(f"{side}{b}", Layer.EDGE) for side in sides for b in "ab"}
    for position, side in enumerate(sides):
        replica, right = divmod(position, 2)
        for name, bottlenecks in members:
            number = int(name.rpartition("h")[2])
            for b in bottlenecks:
                ip = f"10.{2 * replica + 'ab'.index(b)}.{right}.{number + 2}"
                net.attach(hosts[side, name], switches[side, b], ip)
    for replica in range(lanes):
        for b in "ab":
            net.link(switches[f"l{replica}", b], switches[f"r{replica}", b])
    return net.build()
