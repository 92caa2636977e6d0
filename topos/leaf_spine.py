"""Leaf and spine: every leaf switch has hosts, and one uplink to every spine switch.

pFabric's network (Alizadeh et al., SIGCOMM 2013, section 5: 10 and 40 Gb/s) has nine leaves of 16 hosts and
four uplinks of four times the hosts' rate. It is not oversubscribed.
"""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

KIND = "leaf_spine"
MAX_LEAVES = 254
MAX_SPINES = 254
MAX_HOSTS = 252
MAX_SPEED = 100


def leaf_spine(leaves: int, spines: int, hosts: int, speed: int) -> Topology:
    """Return leaves with `hosts` hosts each and uplinks of `speed` times their rate; see `topos.build`.

    Names: host `l0h1`, leaf `l0`, spine `s2`. As many shortest paths join two leaves as there are spines.
    Addresses 10.leaf.0.host+2. Node order: hosts, leaves, spines.
    """
    net = Builder(KIND, {"leaves": leaves, "spines": spines, "hosts": hosts, "speed": speed})
    machines = [net.host(f"l{leaf}h{h}") for leaf in range(leaves) for h in range(hosts)]
    leaf_switches = [net.switch(f"l{leaf}", Layer.EDGE) for leaf in range(leaves)]
    spine_switches = [net.switch(f"s{spine}", Layer.CORE) for spine in range(spines)]
    for number, machine in enumerate(machines):
        leaf, slot = divmod(number, hosts)
        net.attach(machine, leaf_switches[leaf], f"10.{leaf}.0.{slot + 2}")
    for leaf_switch in leaf_switches:
        for spine in spine_switches:
            net.link(leaf_switch, spine, speed)
    return net.build()
