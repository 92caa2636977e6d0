"""The dual-homed FatTree (DHFT) of the MPTCP paper (SIGCOMM 2011, the section on evolving topologies).

Servers have a second NIC anyway. A host uses it to reach a second top-of-rack switch. The ports for this are
taken from the core's over-provisioning, so a host costs as many switch ports as in a FatTree. The wiring
follows the authors' simulator (`MultihomedFatTreeTopology`, source: code):

* Edge switches come in pairs; the hosts below a pair have one NIC to each of the two.
* A pod has k/2 pairs and k/2 aggregation switches; each aggregation switch is cabled to exactly one
  switch of every pair, and upwards as in a FatTree. So a pair has k/2 uplinks, k/4 per switch.

**Port budget.** A FatTree spends 5 switch ports per host (edge 1 down, 1 up; aggregation 1 down, 1 up;
core 1). A pair with h hosts spends 2h ports on its hosts and 4 * k/2 on its uplinks' two hops, together
2h + 2k; this is 5 per host when h = 2k/3. `hosts_per_pair` is the integer nearest to that (exact when k
is a multiple of 3; the authors ran k=12, 8 hosts). An edge switch then uses h + k/4 of its k ports,
11/12 of them; aggregation and core switches use all k.

| k | hosts | edge | agg | core | hosts per pair | ports per host | host links : uplinks of a pod |
|---|---|---|---|---|---|---|---|
| formula | ~k^3/3 | k^2 | k^2/2 | k^2/4 | ~2k/3 | ~5 | |
| 4 | 24 | 16 | 8 | 4 | 3 | 4.67 | 12 : 4 |
| 6 | 72 | 36 | 18 | 9 | 4 | 5 | 24 : 9 |
| 8 | 160 | 64 | 32 | 16 | 5 | 5.2 | 40 : 16 |
| 12 | 576 | 144 | 72 | 36 | 8 | 5 | 96 : 36 |

For large k the core carries 3/4 of what all hosts could send through one NIC each.

**Two planes.** Core c reaches aggregation switch c // (k/2) of every pod, hence only first or only second
switches of pairs. If k is a multiple of 4, first and second switches therefore form two separate networks
that meet only in the hosts. A subflow runs from eth0 to eth0 or from eth1 to eth1; no path leads from eth0 to
eth1. (Otherwise the middle aggregation switches join the planes, partly by longer paths.)
"""

from __future__ import annotations

from topos.topology import Builder, Layer, Topology

KIND = "dual_homed_fat_tree"
MAX_K = 254


def hosts_per_pair(k: int) -> int:
    """Return the hosts below one pair of edge switches: the integer nearest to 2k/3 (module docstring)."""
    return (2 * k + 1) // 3


def links(k: int) -> int:
    """Return the number of links: two per host, and those of both layers of uplinks."""
    return k * (k // 2) * (2 * hosts_per_pair(k) + 2 * (k // 2))


def dual_homed_fat_tree(k: int) -> Topology:
    """Dual-homed FatTree of k-port switches; k even, 4..254 (checked by `topos.build`).

    Hosts are named after the first switch of their pair (`p0e2h1` has NICs to `p0e2` and `p0e3`); NIC
    addresses are 10.pod.edge.host+2 of the switch they lead to. Where k is not a multiple of 4 the
    middle aggregation switch alternates between first and second switches from pair to pair.
    Node order: hosts, edge, aggregation, core.
    """
    half, hosts_below = k // 2, hosts_per_pair(k)
    net = Builder(KIND, {"k": k})
    names = [f"p{p}e{2 * r}h{h}" for p in range(k) for r in range(half) for h in range(hosts_below)]
    hosts = [net.host(name) for name in names]
    edges = [net.switch(f"p{p}e{e}", Layer.EDGE) for p in range(k) for e in range(k)]
    aggs = [net.switch(f"p{p}a{a}", Layer.AGG) for p in range(k) for a in range(half)]
    cores = [net.switch(f"c{c}", Layer.CORE) for c in range(half * half)]
    for number, host in enumerate(hosts):
        pair, slot = divmod(number, hosts_below)
        for edge in (2 * pair, 2 * pair + 1):
            net.attach(host, edges[edge], f"10.{edge // k}.{edge % k}.{slot + 2}")
    for pod in range(k):
        pod_aggs = aggs[pod * half : (pod + 1) * half]
        for pair in range(half):
            for position, agg in enumerate(pod_aggs):
                net.link(edges[pod * k + 2 * pair + _side(position, pair, half)], agg)
        for position, agg in enumerate(pod_aggs):
            for core in cores[position * half : (position + 1) * half]:
                net.link(agg, core)
    return net.build()


def _side(position: int, pair: int, half: int) -> int:
    """Return which switch of a pair (0 or 1) aggregation switch `position` is cabled to."""
    if half % 2 and position == half // 2:
        return pair % 2
    return int(position >= half // 2)
