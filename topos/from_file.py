"""A network from a user's file, as the text that a spec holds (harness/options/user_files.py reads it).

The text is JSON without spaces: `nodes` as [name, layer], hosts with layer 0; `links` as the fields of a
`Link`, nodes by their position, the lower layer first; `rate_mbps`, the rate that speed 1 stands for in the
file, 0 if it names none. So a result needs no file to be read again.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from common.errors import UsageError
from topos.topology import Builder, Layer, Link, Topology

KIND = "file"
MAX_NAME = 40
MIN_HOSTS = 2
MAX_NODES = 20_000
MAX_TEXT = 1 << 22
MAX_DELAY_US = 1e7
MAX_SPEED = 1e6
MAX_LOSS = 0.5
MAX_QUEUE_PKTS = 1_000_000
RATES_MBPS = (0.01, 400_000.0)
LINK_NUMBERS = {
    "rate_mbps": RATES_MBPS,
    "delay_us": (0, MAX_DELAY_US),
    "loss_pct": (0, 100 * MAX_LOSS),
    "queue_pkts": (0, MAX_QUEUE_PKTS),
}
"""The attributes of a link and their ranges. 0 stands for none."""
NODE_ATTRIBUTES = ("kind", "layer")


def from_file(name: str, network: str) -> Topology:
    """Return the network of the text. Addresses are 10.0.0.2 and up, in the order of the hosts' links.

    Raises UsageError for a text that is no network.
    """
    nodes, links = _parts(name, network)
    net = Builder(KIND, {"name": name, "network": network})
    for node, layer in nodes:
        if layer == Layer.HOST:
            net.host(node)
        else:
            net.switch(node, Layer(layer))
    attached = 0
    for link in links:
        numbers = link.speed, link.delay_us, link.loss, link.queue_pkts
        if nodes[link.a][1] == Layer.HOST:
            net.attach(link.a, link.b, address(attached), *numbers)
            attached += 1
        else:
            net.link(link.a, link.b, *numbers)
    return net.build()


def address(number: int) -> str:
    """Return the address of the host's link `number`: 10.0.0.2 to 10.0.0.251, then 10.0.1.2 and so on."""
    block, slot = divmod(number, 250)
    return f"10.{block // 256}.{block % 256}.{slot + 2}"


def rate_mbps(network: str) -> float:
    """Return the rate that speed 1 stands for in the file; 0 if it names no rates."""
    return float(_loaded("", network)["rate_mbps"])


def written(nodes: list[tuple[str, int]], links: list[Link], mbps: float) -> str:
    """Return the text of a network."""
    data = {"nodes": nodes, "links": links, "rate_mbps": mbps}
    return json.dumps(data, separators=(",", ":"), sort_keys=True, allow_nan=False)


def text_of(topology: Topology) -> str:
    """Return the text of any topology whose hosts do not forward packets. Raises UsageError for others."""
    if topology.hosts_forward:
        raise UsageError(f"topology {topology.kind}: its hosts forward packets; a file cannot describe that")
    nodes = [(node.name, int(node.layer)) for node in topology.nodes]
    return written(nodes, list(topology.links), 0.0)


@functools.lru_cache(maxsize=16)  # 70 ms with 3072 links, for each point of a sweep
def without_loss(network: str) -> str:
    """Return the text of the same network whose links lose nothing, and have queues of the usual size."""
    nodes, links = _parts("", network)
    return written(nodes, [link._replace(loss=0.0, queue_pkts=0) for link in links], rate_mbps(network))


@functools.lru_cache(maxsize=16)
def _loaded(name: str, network: str) -> dict[str, Any]:
    try:
        data = json.loads(network)
        if set(data) != {"nodes", "links", "rate_mbps"}:
            raise ValueError("its parts have other names")
        if not 0 <= float(data["rate_mbps"]) <= 1e6:
            raise ValueError("its rate is out of range")
        return dict(data)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"network {name or KIND}: its text is damaged ({error}); run it again") from None


def _parts(name: str, network: str) -> tuple[list[tuple[str, int]], list[Link]]:
    """Return nodes and links. Raises UsageError for values that no network has."""
    data = _loaded(name, network)
    try:
        nodes = [(str(node), int(layer)) for node, layer in data["nodes"]]
        links = [
            Link(int(a), int(b), float(speed), float(delay), float(loss), int(queue))
            for a, b, speed, delay, loss, queue in data["links"]
        ]
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"network {name}: its text is damaged ({error}); run it again") from None
    if len(nodes) > MAX_NODES or not all(0 <= layer <= Layer.CORE for _, layer in nodes):
        raise UsageError(f"network {name}: it has more than {MAX_NODES} nodes, or a node of an unknown layer")
    for link in links:
        if not all(0 <= end < len(nodes) for end in link.ends):
            raise UsageError(f"network {name}: a link lacks an end")
        if not (1 <= link.speed <= MAX_SPEED and 0 <= link.delay_us <= MAX_DELAY_US):
            raise UsageError(f"network {name}: a link has a speed or a delay out of range")
        if not (0 <= link.loss <= MAX_LOSS and 0 <= link.queue_pkts <= MAX_QUEUE_PKTS):
            raise UsageError(f"network {name}: a link has a loss or a queue out of range")
        if nodes[link.b][1] == Layer.HOST:
            raise UsageError(f"network {name}: a link leads to a host from above")
    hosts = {node for node, (_, layer) in enumerate(nodes) if layer == Layer.HOST}
    if len(hosts) < MIN_HOSTS or hosts - {link.a for link in links}:
        raise UsageError(f"network {name}: it has fewer than {MIN_HOSTS} hosts, or a host without a link")
    return nodes, links
