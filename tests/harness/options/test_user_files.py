"""Files that users name in options: what they give, and which place is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topos
from common.errors import UsageError
from controllers.groups import ecmp_groups
from harness.baseline import expected_mbps
from harness.options.options import resolve
from harness.options.parsers import named_workloads
from harness.options.user_files import expanded, network_of, topologies, trace_of
from model.network_plan import network_plan, port_rates_bps
from model.spec import LinkSpec, RunSpec, TopologySpec
from tests.support.options import options_typed
from topos import Layer, Link, from_file
from workloads import matrices, sizes
from workloads.flow import Flow, Traffic
from workloads.trace import written

HOSTS = ("h1", "h2", "h3", "h4")
LINKS: list[dict[str, Any]] = [
    {"source": "h1", "target": "s1", "rate_mbps": 25}, {"source": "h2", "target": "s1", "rate_mbps": 25},
    {"source": "s2", "target": "h3", "rate_mbps": 25, "delay_us": 7.5},
    {"source": "s2", "target": "h4", "rate_mbps": 25},
    {"source": "s1", "target": "m", "rate_mbps": 10, "delay_us": 500},
    {"source": "m", "target": "s2", "rate_mbps": 10},
]  # fmt: skip


def graph() -> dict[str, Any]:
    """Return a network as networkx.node_link_data writes it."""
    return {
        "directed": False, "multigraph": False, "graph": {},
        "nodes": [{"id": name} for name in (*HOSTS, "s1", "s2", "m")],
        "links": [dict(link) for link in LINKS],
    }  # fmt: skip


def read(folder: Path, data: Any) -> TopologySpec:
    path = folder / "net.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return network_of(str(path))


def test_the_graph_is_that_of_the_file(tmp_path: Path) -> None:
    spec = read(tmp_path, graph())
    net = topos.build(spec.kind, spec.params)
    assert [net.nodes[host].name for host in net.hosts] == list(HOSTS)
    layers = {node.name: node.layer for node in net.nodes}
    assert (layers["s1"], layers["s2"], layers["m"]) == (Layer.EDGE, Layer.EDGE, Layer.AGG)
    between = net.links[net.link_between(net.index("s1"), net.index("m"))]
    assert (between.speed, between.delay_us) == (1, 500)
    assert net.links[net.link_between(net.index("h3"), net.index("s2"))].speed == 2.5
    assert from_file.rate_mbps(str(spec.params["network"])) == 10
    assert len(net.shortest_paths(net.index("h1"), net.index("h4"))) == 1


def test_rates_and_delays_reach_the_core(tmp_path: Path) -> None:
    spec = read(tmp_path, graph())
    net = topos.build(spec.kind, spec.params)
    link = LinkSpec(10.0, delay_us=1.0)
    assert sorted(set(port_rates_bps(net, link).tolist())) == [10_000_000, 25_000_000]
    plan = network_plan(net, ecmp_groups(net), link, "hashed", 1)
    assert sorted(set((plan.delay_ps / 1e6).tolist())) == [1.0, 8.5, 501.0]
    assert np.array_equal(plan.delay_ps[::2], plan.delay_ps[1::2]), "both directions"
    baseline = expected_mbps(RunSpec(link, spec, engine="simulator"))
    assert baseline == pytest.approx(10 * 1448 / 1514)


def test_other_attributes_of_links_may_stand_beside_ours(tmp_path: Path) -> None:
    assert read(tmp_path, changed(links_3_label="up", links_3_key=0)) == read(tmp_path, graph())


def test_loss_and_queue_of_a_link_are_those_of_its_ports(tmp_path: Path) -> None:
    usual = read(tmp_path, graph())
    spec = read(tmp_path, changed(links_4_loss_pct=20, links_4_queue_pkts=5, links_0_loss_pct=1))
    net, before = (topos.build(each.kind, each.params) for each in (spec, usual))
    own = [
        2 * net.link_between(net.index(LINKS[4]["source"]), net.index(LINKS[4]["target"])) + i for i in (0, 1)
    ]
    of_host = [
        2 * net.link_between(net.index(LINKS[0]["source"]), net.index(LINKS[0]["target"])) + i for i in (0, 1)
    ]
    link = LinkSpec(10.0, loss=0.1)
    plan, plain = (network_plan(each, ecmp_groups(each), link, "hashed", 1) for each in (net, before))
    expected_loss, expected_queue = plain.loss.copy(), plain.queue_pkts.copy()
    expected_loss[own], expected_loss[of_host], expected_queue[own] = 1 - 0.9 * 0.8, 0.01, 5
    assert plan.loss == pytest.approx(expected_loss)
    assert np.array_equal(plan.queue_pkts, expected_queue)


def test_edges_numbers_and_layers_are_read_too(tmp_path: Path) -> None:
    data = {
        "nodes": [{"id": 0, "kind": "host"}, {"id": 1, "layer": "core", "kind": "switch"}, {"id": 2}],
        "edges": [{"source": 0, "target": 1}, {"source": 1, "target": 2}],
    }
    spec = read(tmp_path, data)
    net = topos.build(spec.kind, spec.params)
    assert [(node.name, node.layer) for node in net.nodes] == [("n0", 0), ("n1", 3), ("n2", 0)]
    assert from_file.rate_mbps(str(spec.params["network"])) == 0


def test_any_topology_can_be_written_as_one() -> None:
    tree = topos.build("fat_tree", {"k": 4})
    again = topos.build(from_file.KIND, {"name": "tree", "network": from_file.text_of(tree)})
    assert [node.name for node in again.nodes] == [node.name for node in tree.nodes]
    assert again.links == tree.links
    with pytest.raises(UsageError, match="forward packets"):
        from_file.text_of(topos.build("bcube", {"n": 2}))


def changed(**changes: Any) -> dict[str, Any]:
    """Return the graph with other values at paths such as `links_0_rate_mbps`."""
    data = graph()
    for path, value in changes.items():
        part, number, name = path.split("_", 2)
        data[part][int(number)][name] = value
    return data


BAD_NETWORKS: list[tuple[Any, str]] = [
    ("{", "it is not JSON: Expecting property name"),
    ("[" * 100_000, "nested too deeply|not JSON"),
    ({"nodes": []}, "no list links or edges"),
    ({"nodes": [], "links": []}, "it has no nodes"),
    ({**graph(), "directed": True}, "directed is true"),
    (changed(nodes_2_id="a-b"), r"nodes\[2\].id: 'a-b' must be a letter"),
    (changed(nodes_2_id=None), r"nodes\[2\]: it has no id"),
    (changed(nodes_1_id="h1"), r"nodes\[1\].id: another node is called h1"),
    (changed(nodes_0_kind="router"), r"nodes\[0\].kind: 'router' must be host or switch"),
    (changed(nodes_4_layer="spine"), r"nodes\[4\].layer: 'spine' must be edge, agg, core"),
    (changed(links_3_target="h9"), r'links\[3\].target: there is no node with the id "h9"'),
    (changed(links_3_rate_mbps="fast"), r'links\[3\].rate_mbps: "fast" must be a number'),
    (changed(links_3_rate_mbps=-1), r"links\[3\].rate_mbps: -1 must be a number from 0.01"),
    (changed(links_3_delay_us=1e9), r"links\[3\].delay_us: 1000000000.0 must be"),
    (changed(links_3_rate_Mbps=10), r"links\[3\].rate_Mbps: .*write rate_mbps"),
    (changed(links_3_delay=10), r"links\[3\].delay: .*write delay_us"),
    (changed(links_3_loss=20), r"links\[3\].loss: .*write loss_pct"),
    (changed(links_3_max_queue_size=5), r"links\[3\].max_queue_size: .*write queue_pkts"),
    (changed(links_3_LinkSpeedRaw=5), r"links\[3\].LinkSpeedRaw: .*write rate_mbps"),
    (changed(links_3_jitter=5), r"links\[3\].jitter: .*leave it out"),
    (changed(links_3_loss_pct=51), r"links\[3\].loss_pct: 51 must be a number from 0 to 50"),
    (changed(links_3_queue_pkts=1.5), r"links\[3\].queue_pkts: 1.5 must be a whole number"),
    (changed(links_3_rate_mbps=0), "link between s2 and h4 has no rate_mbps and others have one"),
    (changed(links_4_source="m"), r"links\[4\]: both ends are m"),
    (changed(links_3_source="h3", nodes_2_kind="host"), "host h3 has a link to another host"),
    (changed(links_5_source="s1", links_5_target="m"), r"links\[5\]: links\[\d\] joins"),
    ({**graph(), "links": LINKS[:1]}, "has no link|has a link to another host|it has 1 hosts"),
]


@pytest.mark.parametrize(("data", "words"), BAD_NETWORKS)
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, data: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        read(tmp_path, data)
    assert "\n" not in str(error.value)
    assert str(tmp_path / "net.json") in str(error.value)


def test_registered_networks_are_checked_too() -> None:
    assert topologies("--topology", ("ls,4",)) == (TopologySpec("leaf_spine", {"leaves": 4}),)
    for text, words in (("ft,5", "even number"), ("nope,1", "unknown topology"), ("file,1", "file:net.json")):
        with pytest.raises(UsageError, match=words):
            topologies("--topology", (text,))


def test_a_damaged_stored_network_is_refused() -> None:
    for nodes, links in (('[["a",0]]', "[[0,9,1,0]]"), ("1", "[]"), ("", "")):
        text = f'{{"nodes":{nodes},"links":{links},"rate_mbps":0}}' if nodes else "{}"
        with pytest.raises(UsageError, match="network net"):
            topos.build(from_file.KIND, {"name": "net", "network": text})


def test_the_numbers_of_a_file_become_part_of_the_workload(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("# bytes, share\n1000 0.25\n\n2000 0.5  # half\n4000 1\n")
    (workload,) = named_workloads("--workload", (f"pairs:60:sizes=@{path}",))
    assert workload.params == {"load": 60, "sizes": "cdf-1000x0-1000x0.25-2000x0.5-4000x1"}
    found = sizes.parse(str(workload.params["sizes"]))
    assert found.at(0.2) == 1000
    assert found.mean_bytes == 0.25 * 1000 + 0.25 * 1500 + 0.5 * 3000
    path.unlink()
    assert named_workloads("--workload", (f"pairs:60:sizes={workload.params['sizes']}",)) == (workload,)


@pytest.mark.parametrize(
    "text",
    [
        "0 0\n1460 25\n2920 50\n5840 100\n",
        "\ufeff0 0\n1460 0.25\n2920 0.5\n5840 1\n",
        "0 1 0\n1 1 0.25\n2 1 0.5\n4 1 1\n",
    ],
)
def test_sizes_of_other_tools_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "sizes").write_text(text)
    (workload,) = named_workloads("--workload", (f"pairs:60:sizes=@{tmp_path}/sizes",))
    found = sizes.parse(str(workload.params["sizes"]))
    assert found.points == ((1, 0.0), (1460, 0.25), (2920, 0.5), (5840, 1.0))


def test_a_long_distribution_has_a_short_label_and_is_whole_in_commands(tmp_path: Path) -> None:
    labels = []
    for last in (100, 101):
        points = [(1000 * (n + 1), n) for n in range(100)]
        (tmp_path / "sizes").write_text("".join(f"{x} {y}\n" for x, y in (*points, (1000 * last, 100))))
        (workload,) = named_workloads("--workload", (f"pairs:60:sizes=@{tmp_path}/sizes",))
        labels.append(matrices.label(workload.matrix, workload.params))
        whole = matrices.label(workload.matrix, workload.params, whole=True)
        assert matrices.parse(whole) == (workload.matrix, workload.params)
    assert len(set(labels)) == 2 and max(map(len, labels)) < 40


def test_small_shares_survive() -> None:
    text = sizes.written([(1, 0.0), (5, 0.00001), (9, 1.0)])
    assert sizes.parse(sizes.INLINE + text).points == ((1, 0.0), (5, 0.00001), (9, 1.0))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1000 0.5\n2000\n", "line 2: '2000' is not a size"),
        ("1000 0.5\n\nbig 1\n", "line 3: 'big 1' is not a size"),
        ("1000 0.5\n2000 1.5\n", "the last one with a share of 1"),
        ("0 0.5\n2000 1\n", "line 1: sizes are whole numbers from 1"),
        ("3000 0.5\n2000 1\n", "line 2: sizes and shares must not fall"),
        ("1000 0.5\n2000 0.9\n", "the last one with a share of 1"),
        ("", "two points or more"),
        ("".join(f"{n} {n / 20_000}\n" for n in range(1, 20_001)), "give 10000 or fewer"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        expanded(f"pairs:60:sizes=@{path}")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        expanded(f"pairs:60:sizes=@{tmp_path / 'none'}")


TREE = topos.build("fat_tree", {"k": 4})
HEAD = "start_s,src,dst,bytes\n"
GOOD = HEAD + "0.5,p0e0h0,p1e0h0,3000\n0,p1e0h0,p0e0h0,1000\n"


def read_trace(folder: Path, text: str, name: str = "flows.csv") -> tuple[Flow, ...]:
    path = folder / name
    path.write_text(text)
    spec = trace_of(str(path))
    return matrices.build(spec.matrix, TREE, spec.params, 1, Traffic(2.0, 100.0))


def test_the_flows_are_those_of_the_file(tmp_path: Path) -> None:
    assert read_trace(tmp_path, GOOD) == (
        Flow("p1e0h0", "p0e0h0", 1000, 0.0), Flow("p0e0h0", "p1e0h0", 3000, 0.5),
    )  # fmt: skip
    turned = "dst, src, bytes, start_s\r\np0e0h0, p1e0h0, 1000, 0\r\n\r\n"
    assert read_trace(tmp_path, turned) == (Flow("p1e0h0", "p0e0h0", 1000),)


ON_NUMBERS = (Flow("p0e0h1", "p0e1h0", 2920, 0.5), Flow("p0e1h1", "p0e0h0", 1460, 1.0))
IN_NODES = from_file.written([("n7", 0), ("n9", 0), ("n8", 1)], [Link(0, 2), Link(1, 2)], 0)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("flow.txt", "2\n1 2 3 100 2920 0.5\n\n3 0 3 100 1460 1\nnot read\n"),
        ("trace.txt", "0 0.5 0 0 2 0 0 1 2\n1 1.0 0 0 1 0 0 3 0 more\n"),
        (
            "m.cm",
            "Nodes 16\n# no more\n1->2 id 1 start 5e11 size 2920\n3->0 start 1e12 size 1460 prio 3\n",
        ),
        ("mine.csv", HEAD + "0.5,1,2,2920\n1,3,0,1460\n"),
    ],
)
def test_flows_of_other_tools_are_read(tmp_path: Path, name: str, text: str) -> None:
    assert read_trace(tmp_path, text, name) == ON_NUMBERS


def test_a_number_is_a_node_of_a_network_that_numbers_its_nodes(tmp_path: Path) -> None:
    net = topos.build(from_file.KIND, {"name": "net", "network": IN_NODES})
    (tmp_path / "flow.txt").write_text("1\n9 7 3 100 20 0\n")
    spec = trace_of(str(tmp_path / "flow.txt"))
    assert matrices.build(spec.matrix, net, spec.params, 1, Traffic(2.0, 100.0)) == (Flow("n9", "n7", 20),)
    (tmp_path / "flow.txt").write_text("1\n0 7 3 100 20 0\n")
    spec = trace_of(str(tmp_path / "flow.txt"))
    with pytest.raises(UsageError, match="flow 1: the network has no host 0"):
        matrices.build(spec.matrix, net, spec.params, 1, Traffic(2.0, 100.0))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("flow.txt", "3\n1 2 3 100 2920 0.5\n", "line 1: it says 3 flows, and 1 lines follow"),
        ("flow.txt", "1\n1 2 3 100 2920\n", "line 2: 5 values, not 6"),
        ("trace.txt", "0 0.5 0 0 2 0 0 1\n", "line 1: 8 values, not 9"),
        ("m.cm", "1->2 size 5\n", "line 1: it is not a connection"),
        ("m.cm", "1->2 start 0 size 5 trigger 3\n", "line 1: trigger is not read"),
        ("m.cm", "trigger id 1 oneshot\n", "line 1: trigger is not read"),
        ("m.cm", "1->1 start 0 size 5\n", "line 1: 1 sends to itself"),
    ],
)
def test_a_mistake_in_another_tools_file_has_its_line(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        read_trace(tmp_path, text, name)


def test_a_trace_has_no_warm_up_unless_it_is_asked_for(tmp_path: Path) -> None:
    read_trace(tmp_path, GOOD)
    text = f"trace:{tmp_path / 'flows.csv'}"
    defaults = {"k": (4,), "workload": ("one_to_one",), "transport.subflows": (1,)}
    for engine in ("simulator", "mininet"):
        options = resolve(options_typed(workload=text, engine=engine), defaults)
        assert options.base.warmup_s == 0
        assert "warmup_s" not in options.growing
    assert resolve(options_typed(workload=text, warmup="3"), defaults).base.warmup_s == 3


BAD_TRACES = [
    ("", "it has no flows"),
    ("start,src,dst,bytes\n", "line 1: its columns are 'start,src,dst,bytes'; write start_s,"),
    (HEAD, "it has no flows"),
    (GOOD + "1,p0e0h0,p1e0h0\n", r"line 4: 3 values, not 4"),
    (GOOD + "\n1,p0e0h0,p1e0h0,9\n", r"line 4: 0 values, not 4"),
    (GOOD + "x,p0e0h0,p1e0h0,9\n", "line 4: start_s is 'x', not a number"),
    (GOOD + "nan,p0e0h0,p1e0h0,9\n", "line 4: start_s is 'nan'"),
    (GOOD + "-1,p0e0h0,p1e0h0,9\n", "line 4: start_s is -1"),
    (GOOD + "1,p0e0h0,p1e0h0,0\n", "line 4: bytes is 0"),
    (GOOD + "1,p0e0h0,p1e0h0,1.5\n", "line 4: bytes is 1.5"),
    (GOOD + "1,p0-e0,p1e0h0,9\n", "line 4: src is 'p0-e0'"),
    (GOOD + "1,p0e0h0,p0e0h0,9\n", "line 4: p0e0h0 sends to itself"),
    (GOOD + "1,p0e0h0,p9e0h0,9\n", "flow 3: the network has no host p9e0h0: did you mean"),
    (GOOD + "2,p0e0h0,p1e0h0,9\n", "flow 3: it starts after 2 s, and the run ends after 2 s: give"),
]


@pytest.mark.parametrize(("text", "words"), BAD_TRACES)
def test_a_mistake_is_one_line_with_its_number(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        read_trace(tmp_path, text)
    assert "\n" not in str(error.value)


def test_what_is_no_text_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_bytes(b"\xff\xfe")
    for name, words in (("flows.csv", "not a text file"), ("nope.csv", "No such file"), (".", "directory")):
        with pytest.raises(UsageError, match=words):
            trace_of(str(tmp_path / name))


def test_a_damaged_stored_trace_is_refused() -> None:
    for flows in ("1,a,b", "x,a,b,1", "0,a,a,1", "0,a,b,-1"):
        with pytest.raises(UsageError, match="its text is damaged"):
            matrices.build("trace", TREE, {"name": "t", "flows": flows}, 1, Traffic(2.0, 100.0))
    with pytest.raises(UsageError, match="name a file of flows"):
        matrices.build("trace", TREE, {}, 1, Traffic(2.0, 100.0))


def test_only_what_a_trace_holds_is_written() -> None:
    assert written([Flow("a", "b", 5, 1)]) == "1.0,a,b,5"
    with pytest.raises(UsageError, match="flow 1 from a"):
        written([Flow("a", "b", plain=True)])
    with pytest.raises(UsageError, match="1 to 200000 flows"):
        written([])
