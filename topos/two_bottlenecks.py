"""Two bottlenecks side by side, and a pair of hosts with a NIC at each: does traffic move off the worse one?

Besides the dual-homed pair each bottleneck has pairs of its own, `first` and `second` of them. All links have
one rate. `lanes` are disjoint copies in one network: as many independent repetitions in one run.
"""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

KIND = "two_bottlenecks"
MAX_COMPETITORS = 251
MAX_LANES = 127
_DUAL_HOMED = "h0"


def two_bottlenecks(first: int, second: int, lanes: int) -> Topology:
    """`first` and `second` single-homed pairs beside the dual-homed one (ranges checked by `topos.build`).

    Lane x has bottleneck a between switches `lxa` and `rxa`, and b between `lxb` and `rxb`; host `lxh0` has
    its first NIC at `lxa` and its second at `lxb`, opposite host `rxh0` likewise; `lxahy` and `lxbhy`, y from
    1 on, have one. Addresses 10.2 lane + bottleneck.0 on the left, .1 on the right; a path leads from a NIC
    to those of its own bottleneck alone. Node order: lane by lane the left hosts, the dual-homed
    first, then the right ones, the dual-homed last, so that a lane's first and last host are joined; then the
    switches.
    """
    net = Builder(KIND, {"first": first, "second": second, "lanes": lanes})
    sides = [f"{side}{lane}" for lane in range(lanes) for side in "lr"]
    names = [(f"{b}h{y}", (b,)) for b, count in (("a", first), ("b", second)) for y in range(1, count + 1)]
    members = [(_DUAL_HOMED, ("a", "b")), *names]
    hosts = {
        (side, name): net.host(f"{side}{name}")
        for side in sides
        for name, _ in (members if side.startswith("l") else reversed(members))
    }
    switches = {(side, b): net.switch(f"{side}{b}", Layer.EDGE) for side in sides for b in "ab"}
    for position, side in enumerate(sides):
        lane, right = divmod(position, 2)
        for name, bottlenecks in members:
            number = int(name.rpartition("h")[2])
            for b in bottlenecks:
                ip = f"10.{2 * lane + 'ab'.index(b)}.{right}.{number + 2}"
                net.attach(hosts[side, name], switches[side, b], ip)
    for lane in range(lanes):
        for b in "ab":
            net.link(switches[f"l{lane}", b], switches[f"r{lane}", b])
    return net.build()
