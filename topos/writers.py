"""Networks as files for other tools: `refabric export --topology ft,4 --format graphml`.

What topos/readers reads is the same network again, but for htsim's, whose nodes are numbered there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import quoteattr

from common.errors import UsageError
from topos import fat_tree, leaf_spine
from topos.from_file import LINK_NUMBERS, NODE_ATTRIBUTES
from topos.topology import Kind, Layer, Topology

GBPS = 1000
"""Mb/s."""


def _parts(net: Topology, rate_mbps: float) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Return nodes and links as node-link JSON has them."""
    if net.hosts_forward:
        raise UsageError(f"topology {net.kind}: its hosts forward packets; a file cannot describe that")
    nodes = [
        {"id": node.name, "kind": str(node.kind)}
        | ({"layer": node.layer.name.lower()} if node.layer is not Layer.HOST else {})
        for node in net.nodes
    ]
    links = [
        {
            "source": net.nodes[link.a].name,
            "target": net.nodes[link.b].name,
            "rate_mbps": link.speed * rate_mbps,
        }
        | ({"delay_us": link.delay_us} if link.delay_us else {})
        | ({"loss_pct": 100 * link.loss} if link.loss else {})
        | ({"queue_pkts": link.queue_pkts} if link.queue_pkts else {})
        for link in net.links
    ]
    return nodes, links


def as_json(net: Topology, rate_mbps: float) -> str:
    """Return node-link JSON, for networkx.node_link_graph."""
    nodes, links = _parts(net, rate_mbps)
    data = {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "edges": links}
    return json.dumps(data, indent=1) + "\n"


def as_graphml(net: Topology, rate_mbps: float) -> str:
    """Return GraphML."""
    return "".join(_graphml(*_parts(net, rate_mbps)))


def _graphml(nodes: list[dict[str, str]], links: list[dict[str, Any]]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name in NODE_ATTRIBUTES:
        yield f'  <key id="{name}" for="node" attr.name="{name}" attr.type="string"/>\n'
    for name in LINK_NUMBERS:
        yield f'  <key id="{name}" for="edge" attr.name="{name}" attr.type="double"/>\n'
    yield '  <graph edgedefault="undirected">\n'
    for tag, entries in (("node", nodes), ("edge", links)):
        for entry in entries:
            own = " ".join(f"{k}={quoteattr(entry[k])}" for k in ("id", "source", "target") if k in entry)
            data = "".join(
                f'<data key="{name}">{value}</data>'
                for name, value in entry.items()
                if name not in {"id", "source", "target"}
            )
            yield f"    <{tag} {own}>{data}</{tag}>\n"
    yield "  </graph>\n</graphml>\n"


def as_htsim(net: Topology, rate_mbps: float) -> str:
    """Return a `.topo` of htsim, which has FatTrees and leaf-spines at rates of whole Gb/s only."""
    if rate_mbps % GBPS:
        raise UsageError(f"htsim: {rate_mbps:g} Mb/s is not a whole number of Gb/s; give --rate 10000")
    gbps, hosts = int(rate_mbps / GBPS), len(net.hosts)
    if net.kind == fat_tree.KIND:
        half, times = net.number("k") // 2, net.number("oversubscription", 1)
        pod = half * half * times
        tiers = [(gbps, half * times, half), (gbps, half, half), (gbps, 2 * half, 0)]
    elif net.kind == leaf_spine.KIND:
        pod, tiers = (
            hosts,
            [
                (gbps, net.number("hosts"), net.number("spines")),
                (gbps * net.number("speed"), net.number("leaves"), 0),
            ],
        )
    else:
        raise UsageError(f"htsim: topology {net.kind} is neither a FatTree nor a leaf-spine")
    lines = [f"Nodes {hosts}", f"Tiers {len(tiers)}", f"Podsize {pod}"]
    for number, (speed, down, up) in enumerate(tiers):
        lines += ["", f"Tier {number}", f"Downlink_speed_Gbps {speed}", f"Radix_Down {down}"]
        lines += [f"Radix_Up {up}"] if up else []
        lines += ["Downlink_Latency_ns 0"]
        if not number and down % up == 0 and down > up:
            lines += [f"Oversubscribed {down // up}"]
    return "\n".join(lines) + "\n"


def as_mininet(net: Topology, rate_mbps: float) -> str:
    """Return a Python file for `mn --custom FILE --topo network --link tc`; addresses are ours."""
    _, links = _parts(net, rate_mbps)
    lines = [
        f'"""{net.kind} with {len(net.hosts)} hosts: mn --custom THIS_FILE --topo network --link tc"""',
        "from mininet.topo import Topo", "", "", "class Network(Topo):", "    def build(self):",
    ]  # fmt: skip
    for number, node in enumerate(net.nodes):
        if node.kind is Kind.HOST:
            nic = net.nics_of(number)[0]
            lines.append(f'        self.addHost("{node.name}", ip="{nic.ip}/8", mac="{nic.mac}")')
        else:
            lines.append(f'        self.addSwitch("{node.name}", dpid="{net.dpid(number):016x}")')
    for link in links:
        more = f', delay="{link["delay_us"]:g}us"' if "delay_us" in link else ""
        more += f", loss={link['loss_pct']:g}" if "loss_pct" in link else ""
        more += f", max_queue_size={link['queue_pkts']}" if "queue_pkts" in link else ""
        lines.append(
            f'        self.addLink("{link["source"]}", "{link["target"]}", bw={link["rate_mbps"]:g}{more})'
        )
    return "\n".join([*lines, "", "", 'topos = {"network": Network}', ""])


FORMATS: dict[str, tuple[str, Callable[[Topology, float], str]]] = {
    "json": (".json", as_json),
    "graphml": (".graphml", as_graphml),
    "htsim": (".topo", as_htsim),
    "mininet": (".py", as_mininet),
}
"""Suffix of the file, and what writes it for a network and the rate of speed 1, in Mb/s."""
