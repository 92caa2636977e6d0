"""Networks in the files of other tools: each is the network that the tool would build, or names the line."""

from __future__ import annotations

from pathlib import Path

import pytest

import topos
from common.errors import UsageError
from topos import Topology, from_file, readers

HPCC = """6 2 5
0 5
1 0 100Gbps 1000ns 0.000000
2 0 100Gbps 1us 0
3 5 25Gbps 0.001ms 0
4 5 25Gbps 1us 0
0 5 400Gbps 2us 0.01
"""
TOPO = """# three tiers
Nodes 8
Tiers 3
Podsize 4

Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 200

Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 4
Downlink_Latency_ns 1000
Switch_Latency_ns 400
Bundle 1

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 3000
Bundle 2
"""
GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d1"/>
  <key attr.name="LinkSpeed" attr.type="string" for="edge" id="d2"/>
  <key attr.name="label" attr.type="string" for="node" id="d3"/>
  <key attr.name="delay_us" attr.type="double" for="edge" id="d4"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="d3">New &amp; York</data></node>
    <node id="1"/>
    <node id="far-away"/>
    <edge source="0" target="1"><data key="d1">10000000000.0</data><data key="d2">10</data></edge>
    <edge source="1" target="far-away"><data key="d1">2500000000.0</data><data key="d4">7</data></edge>
  </graph>
</graphml>
"""
LAB = """name: lab
topology:
  kinds: {linux: {image: some/image}}
  nodes:
    leaf-1: {kind: nokia_srlinux}
    leaf-2: {kind: nokia_srlinux}
    client1: {kind: linux}
    client2: {kind: linux}
    br-one: {kind: bridge}
  links:
    - endpoints: ["leaf-1:e1-1", "leaf-2:e1-1"]
    - endpoints: ["client1:eth1", "leaf-1:e1-2"]
    - type: veth
      endpoints: [{node: client2, interface: eth1}, {node: leaf-2, interface: e1-2}]
    - endpoints: ["br-one:e1", "leaf-1:e1-3"]
"""


def read(folder: Path, name: str, text: str) -> Topology:
    """Return the network of a file that has this text; `name` may end in `,hosts=N`."""
    (folder / name.partition(",")[0]).write_text(text)
    return topos.build(from_file.KIND, readers.parameters_of(str(folder / name)))


def speeds(net: Topology) -> dict[tuple[str, str], tuple[float, float]]:
    """Return rate, in Mb/s, and delay, in us, of each link by the names of its ends, sorted."""
    mbps = from_file.rate_mbps(str(net.params["network"])) or 1.0
    names = [node.name for node in net.nodes]
    return {
        (min(ends), max(ends)): (link.speed * mbps, link.delay_us)
        for link in net.links
        for ends in [[names[end] for end in link.ends]]
    }


def test_hpcc(tmp_path: Path) -> None:
    net = read(tmp_path, "topology.txt", HPCC)
    assert net.host_names == ("n1", "n2", "n3", "n4")
    assert speeds(net) == {
        ("n0", "n1"): (100_000, 1), ("n0", "n2"): (100_000, 1), ("n3", "n5"): (25_000, 1),
        ("n4", "n5"): (25_000, 1), ("n0", "n5"): (400_000, 2),
    }  # fmt: skip
    assert net.losses == {0.0, 0.01}


def test_htsim_has_its_wires_and_the_delay_of_its_switches(tmp_path: Path) -> None:
    net = read(tmp_path, "test.topo", TOPO)
    found = speeds(net)
    assert len(net.hosts) == 8 and len(net.switches) == 4 + 4 + 4
    # h0 and h7 are in two pods: t0 and t3 with a0 and a2, which reach c0 and c2; a1 and a3 reach c1 and c3.
    assert {pair for pair in found if "c0" in pair} == {(f"a{agg}", "c0") for agg in (0, 2)}
    assert found["a0", "c0"] == pytest.approx((2 * 100_000, 3.2))
    assert found["h0", "t0"] == pytest.approx((200_000, 1.1))
    path = [("h0", "t0"), ("a0", "t0"), ("a0", "c0"), ("a2", "c0"), ("a2", "t3"), ("h7", "t3")]
    latency = 1 + 1 + 3 + 3 + 1 + 1 + 2 * 0.2 + 2 * 0.4
    assert sum(found[pair][1] for pair in path) == pytest.approx(latency)


def test_two_tiers_of_htsim(tmp_path: Path) -> None:
    text = "Nodes 8\nTiers 2\nPodsize 8\nTier 0\nDownlink_speed_Gbps 1\nRadix_Down 4\nRadix_Up 2\n"
    text += "Downlink_Latency_ns 500\nTier 1\nDownlink_speed_Gbps 1\nRadix_Down 2\nDownlink_Latency_ns 500\n"
    net = read(tmp_path, "leaf.topo", text)
    assert (len(net.hosts), len(net.switches), len(net.links)) == (8, 4, 8 + 4)


def test_graphml_of_the_topology_zoo_gets_hosts(tmp_path: Path) -> None:
    net = read(tmp_path, "zoo.graphml,hosts=2", GRAPHML)
    assert [net.nodes[switch].name for switch in net.switches] == ["n0", "n1", "faraway"]
    assert len(net.hosts) == 6
    assert {rate for rate, _ in speeds(net).values()} == {10_000, 2500}
    assert speeds(net)["faraway", "n1"] == (2500, 7)
    assert all(net.links[nic.link].speed == 1 for nic in net.nics), "hosts have the lowest rate"


def test_containerlab(tmp_path: Path) -> None:
    text = LAB.replace("br-one: {kind: bridge}", "br-one: {kind: linux}")
    net = read(tmp_path, "lab.clab.yml", text)
    assert sorted(net.host_names) == ["brone", "client1", "client2"], "nodes with one link are hosts"
    assert sorted(read(tmp_path, "lab.clab.yaml", LAB).host_names) == ["client1", "client2"]


WRONG = [
    ("topology.txt", HPCC.replace("6 2 5", "6 2"), "line 1: it does not begin with"),
    ("topology.txt", "", "line 1: it does not begin with"),
    ("topology.txt", HPCC.replace("25Gbps", "25Gb", 1), "line 5: rate '25Gb' is not a number and one of"),
    ("topology.txt", HPCC.replace("0 5\n", "0\n", 1), "its second line names 1 switches"),
    ("topology.txt", HPCC.replace("6 2 5", "6 2 6"), "it has 5 links, and the first line says 6"),
    ("topology.txt", HPCC.replace("4 5 25", "9 5 25"), "line 6.source: there is no node with the id 9"),
    ("topology.txt", HPCC.replace("0.01", "0.9"), "line 7.loss_pct: 90.0 must be a number from 0 to 50"),
    ("t.topo", TOPO.replace("Radix_Up 4", "Radix_Up 3"), "uplinks of tier 1 by bundles: 3 cannot be divided"),
    ("t.topo", TOPO.replace("Radix_Down 4", "Radix_Down 6"), "tier 2 has 6 links down, and there are 2 pods"),
    ("t.topo", TOPO.replace("Podsize 4", "Podsize 3"), "8 nodes in pods of 3"),
    ("t.topo", TOPO + "Queue_down 9000\n", "line 26: Queue_down is not read; .*--queue-bytes"),
    ("t.topo", TOPO + "Speed 9\n", "line 26: Speed is none of bundle, "),
    ("t.topo", TOPO + "Bundle 2\n", "line 26: Bundle is there twice"),
    ("t.topo", TOPO.replace("Tiers 3", "Tiers 2"), r"it describes the tiers \[0, 1, 2\]"),
    ("z.graphml", GRAPHML.replace("undirected", "directed"), "line 7: edgedefault is directed"),
    ("z.graphml", GRAPHML.replace("</graph>", ""), "line 14: it is not XML: mismatched tag"),
    ("z.graphml", GRAPHML.replace("2500000000.0", "much"), 'line 12.rate_mbps: "much" must be a number'),
    ("z.graphml", GRAPHML.replace('target="far-away"', 'target="9"'), "line 12.target: there is no node"),
    ("z.graphml", GRAPHML.replace("delay_us", "jitter"), "line 12.jitter: this attribute is not read"),
    (
        "z.graphml",
        GRAPHML.replace("<graphml", '<!DOCTYPE a [<!ENTITY b "">]><graphml'),
        "declares an entity",
    ),
    ("lab.yml", LAB.replace('"br-one:e1", ', ""), r"topology.links\[3\]: it has no two endpoints"),
    ("lab.yml", LAB.replace("br-one:e1", "host:e1"), r"links\[3\].source: there is no node .* \"host\""),
    ("lab.yml", LAB.replace("type: veth", "type: macvlan"), r"links\[2\]: links of the type macvlan"),
    ("lab.yml", LAB.replace("topology:", "topology: {"), "line .*: it is not YAML"),
    ("lab.yml", "[1]", "it has no topology with nodes"),
    ("lab.yml,hosts=0", LAB, "hosts=0 must be a number from 1"),
]


@pytest.mark.parametrize(("name", "text", "words"), WRONG)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        read(tmp_path, name, text)
    assert "\n" not in str(error.value)
