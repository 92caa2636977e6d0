"""`.topo` of htsim (Broadcom/csg-htsim): a FatTree of two or three tiers by its radixes.

Hosts are `h0` and up, switches of tier 0 `t0`, of tier 1 `a0` and of tier 2 `c0` and up, numbered and wired
as there. A bundle becomes one link with the rate of all. The latency of a switch is added in halves to its
links, so that the delay between any two hosts is htsim's.
"""

from __future__ import annotations

from common.errors import UsageError
from topos import from_file
from topos.readers.graph import Part

HEAD = {"nodes", "tiers", "podsize"}
TIER = {
    "downlink_speed_gbps", "radix_down", "radix_up", "downlink_latency_ns", "switch_latency_ns",
    "oversubscribed", "bundle",
}  # fmt: skip
QUEUES = {"queue_up", "queue_down"}


def read(what: str, text: str) -> tuple[list[Part], list[Part]]:
    """Return nodes and links. Raises UsageError."""
    head, tiers = _numbers(what, text)
    hosts, per_pod, count = head["nodes"], head["podsize"], head["tiers"]
    if count not in (2, 3) or sorted(tiers) != list(range(count)):
        raise UsageError(f"{what}: it describes the tiers {sorted(tiers)}; give 2 or 3 of them, from 0")
    if not 2 <= hosts <= from_file.MAX_NODES or hosts % per_pod:
        raise UsageError(f"{what}: {hosts} nodes in pods of {per_pod}; give pods that are all full")

    def of(tier: int, name: str) -> int:
        value = tiers[tier].get(name, {"bundle": 1, "switch_latency_ns": 0}.get(name, -1))
        if value < 0 or not (value or name.endswith("latency_ns")):
            raise UsageError(f"{what}: tier {tier} has no {name}")
        return value

    def shared(how: str, total: int, by: int) -> int:
        if total % by:
            raise UsageError(f"{what}: {how}: {total} cannot be divided by {by}")
        return total // by

    pods, down = hosts // per_pod, of(0, "radix_down")
    tors = shared("hosts of a pod by switches of tier 0", per_pod, down)
    aggs = shared("uplinks of tier 0 by bundles", of(0, "radix_up"), of(1, "bundle"))
    if of(1, "radix_down") != tors * of(1, "bundle"):
        raise UsageError(
            f"{what}: tier 1 has {of(1, 'radix_down')} links down, and its pod {tors} switches below with "
            f"bundles of {of(1, 'bundle')}"
        )
    wires = [(f"h{host}", f"t{host // down}", 0) for host in range(hosts)]
    wires += [
        (f"t{pod * tors + tor}", f"a{pod * aggs + agg}", 1)
        for pod in range(pods)
        for tor in range(tors)
        for agg in range(aggs)
    ]
    cores = 0
    if count == 3:
        up = shared("uplinks of tier 1 by bundles", of(1, "radix_up"), of(2, "bundle"))
        cores = up * aggs
        if of(2, "radix_down") != pods * of(2, "bundle"):
            raise UsageError(
                f"{what}: tier 2 has {of(2, 'radix_down')} links down, and there are {pods} pods with "
                f"bundles of {of(2, 'bundle')}"
            )
        wires += [
            (f"a{agg}", f"c{agg % aggs + aggs * number}", 2)
            for agg in range(pods * aggs)
            for number in range(up)
        ]
    elif pods != 1:
        raise UsageError(f"{what}: {pods} pods and two tiers; nothing joins the pods")
    counts = {"t": pods * tors, "a": pods * aggs, "c": cores}
    layers = {"t": "edge", "a": "agg", "c": "core"}
    nodes: list[Part] = [(what, {"id": f"h{number}", "kind": "host"}) for number in range(hosts)]
    for letter, many in counts.items():
        nodes += [
            (what, {"id": f"{letter}{number}", "kind": "switch", "layer": layers[letter]})
            for number in range(many)
        ]
    links = []
    for low, high, tier in wires:
        ns = of(tier, "downlink_latency_ns") + of(tier, "switch_latency_ns") / 2
        ns += of(tier - 1, "switch_latency_ns") / 2 if tier else 0
        rate = 1000 * of(tier, "downlink_speed_gbps") * of(tier, "bundle")
        links.append((what, {"source": low, "target": high, "rate_mbps": rate, "delay_us": ns / 1000}))
    return nodes, links


def _numbers(what: str, text: str) -> tuple[dict[str, int], dict[int, dict[str, int]]]:
    """Return the numbers of the head and those of each tier, by their names in small letters."""
    head: dict[str, int] = {}
    tiers: dict[int, dict[str, int]] = {}
    part, known = head, HEAD
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.partition("#")[0].split()
        if not cells:
            continue
        where, name = f"{what}, line {number}", cells[0].lower()
        if len(cells) != 2 or not cells[1].isdecimal():
            raise UsageError(f"{where}: '{' '.join(cells)[:40]}' is not a name and a whole number")
        if name == "tier":
            part, known = tiers.setdefault(int(cells[1]), {}), TIER
        elif name in QUEUES:
            raise UsageError(f"{where}: {cells[0]} is not read; leave it out and give --queue-bytes")
        elif name not in known or name in part:
            wrong = "is there twice" if name in part else f"is none of {', '.join(sorted(known))}"
            raise UsageError(f"{where}: {cells[0][:40]} {wrong}")
        else:
            part[name] = int(cells[1])
    for name in sorted(HEAD):
        if not head.get(name):
            raise UsageError(f"{what}: it has no {name}")
    return head, tiers
