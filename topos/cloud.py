"""A cloud with several tenants: racks that share a layer of spine switches, with other tenants in every rack.

It follows what SIGCOMM 2011 (Raiciu et al.) found in EC2: machines in different racks have 2 to 8 equal
paths, depending on the racks, and machines in one rack have one path. The wiring of EC2 is not published.
Here racks alternate between 8, 6, 4 and 2 uplinks, which lead to the first spines. Two racks are joined by as
many paths as the rack with fewer uplinks has.
"""

from __future__ import annotations

import re

from topos.topology import Builder, Layer, Topology

KIND = "cloud"
MAX_HOSTS, MAX_RACKS, MAX_TENANTS = 252, 252, 252
UPLINKS = (8, 6, 4, 2)
_NAME = re.compile(r"r(\d+)([ht])\d+")


def cloud(n: int, racks: int, tenants: int) -> Topology:
    """Return a cloud: `n` hosts under test ("ours"), distributed over the racks in turn, and `tenants` hosts
    of other tenants in every rack (`topos.build` checks ranges). All links have one rate.

    Names: ours `r3h0`, other tenants' `r3t0`, the rack's switch `r3`, spine `s7`. Addresses 10.rack.0.host+2,
    other tenants' 10.rack.1.host+2. Node order: our hosts rack by rack, other tenants' likewise, racks,
    spines.
    """
    net = Builder(KIND, {"n": n, "racks": racks, "tenants": tenants})
    below = [(rack, slot) for rack in range(racks) for slot in range(len(range(rack, n, racks)))]
    others = [(rack, slot) for rack in range(racks) for slot in range(tenants)]
    ours = [net.host(f"r{rack}h{slot}") for rack, slot in below]
    theirs = [net.host(f"r{rack}t{slot}") for rack, slot in others]
    switches = [net.switch(f"r{rack}", Layer.EDGE) for rack in range(racks)]
    spines = [net.switch(f"s{spine}", Layer.CORE) for spine in range(max(map(uplinks, range(racks))))]
    for kind, (hosts, places) in enumerate(((ours, below), (theirs, others))):
        for host, (rack, slot) in zip(hosts, places, strict=True):
            net.attach(host, switches[rack], f"10.{rack}.{kind}.{slot + 2}")
    for rack, switch in enumerate(switches):
        for spine in spines[: uplinks(rack)]:
            net.link(switch, spine)
    return net.build()


def uplinks(rack: int) -> int:
    """Return the number of uplinks of a rack."""
    return UPLINKS[rack % len(UPLINKS)]


def is_ours(host: str) -> bool:
    """Return whether the host with this name is ours, not another tenant's."""
    found = _NAME.fullmatch(host)
    return found is not None and found[2] == "h"


def rack_of(host: str) -> int | None:
    """Return the rack number in a host's name; None for names of other topologies."""
    found = _NAME.fullmatch(host)
    return int(found[1]) if found else None


def paths_between(a: str, b: str) -> int | None:
    """Return the number of shortest paths between two hosts by name; None for other topologies' names."""
    one, other = rack_of(a), rack_of(b)
    if one is None or other is None:
        return None
    return 1 if one == other else min(uplinks(one), uplinks(other))
