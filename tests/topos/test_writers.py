"""Networks written for other tools: what we read again is the same network."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import topos
from common.errors import UsageError
from tests.support.command import refabric
from topos import Topology, from_file, readers, writers


def again(folder: Path, name: str, net: Topology, rate: float) -> Topology:
    (folder / name).write_text(writers.FORMATS[name.partition(".")[2]][1](net, rate))
    return topos.build(from_file.KIND, readers.parameters_of(str(folder / name)))


@pytest.mark.parametrize("form", ["json", "graphml"])
@pytest.mark.parametrize("network", ["ft,4", "ls,3", "dhft,4", "jf,9,ports=4"])
def test_a_written_network_is_read_again(tmp_path: Path, form: str, network: str) -> None:
    net = topos.build(*topos.parse(network))
    read = again(tmp_path, f"net.{form}", net, 40.0)
    assert [node.name for node in read.nodes] == [node.name for node in net.nodes]
    assert [node.layer for node in read.nodes] == [node.layer for node in net.nodes]
    assert read.links == net.links
    assert from_file.rate_mbps(str(read.params["network"])) == 40


def test_links_keep_delay_loss_and_queue(tmp_path: Path) -> None:
    text = from_file.written(
        [("a", 0), ("b", 0), ("s", 1)],
        [topos.Link(0, 2, 1, 7.5, 0.25, 9), topos.Link(1, 2, 2.5)],
        10,
    )
    net = topos.build(from_file.KIND, {"name": "net", "network": text})
    for form in ("json", "graphml"):
        assert again(tmp_path, f"net.{form}", net, 10).links == net.links


def test_htsim_gets_the_same_numbers_of_nodes_and_links(tmp_path: Path) -> None:
    for network in ("ft,4", "ft,4,oversubscription=4", "ls,4,spines=2,hosts=4,speed=1"):
        net = topos.build(*topos.parse(network))
        (tmp_path / "net.topo").write_text(writers.as_htsim(net, 10_000))
        read = topos.build(from_file.KIND, readers.parameters_of(str(tmp_path / "net.topo")))
        assert (len(read.hosts), len(read.switches), len(read.links)) == (
            len(net.hosts), len(net.switches), len(net.links),
        )  # fmt: skip
        assert len(read.shortest_paths(read.hosts[0], read.hosts[-1])) == len(
            net.shortest_paths(net.hosts[0], net.hosts[-1])
        )


def test_mininet_builds_the_topology(tmp_path: Path) -> None:
    pytest.importorskip("mininet")
    net = topos.build(*topos.parse("ft,4"))
    (tmp_path / "written").write_text(writers.as_mininet(net, 10))
    topo: Any = runpy.run_path(str(tmp_path / "written"))["topos"]["network"]()
    assert sorted(topo.hosts()) == sorted(net.host_names)
    assert len(topo.switches()) == len(net.switches) and len(topo.links()) == len(net.links)
    assert all(about["bw"] == 10 for _, _, about in topo.links(withInfo=True))


def test_the_command_writes_a_new_file_and_says_what_is_wrong(tmp_path: Path) -> None:
    target = tmp_path / "net.graphml"
    arguments = ["export", "--topology", "ft,4", "--format", "graphml", "--output", target]
    assert refabric(*arguments).exit_code == 0
    assert len(topos.build(from_file.KIND, readers.parameters_of(str(target))).hosts) == 16
    for wrong, words in (
        (arguments, "it exists"),
        (["export", "pfabric", "--topology", "ft,4"], "give one of them"),
        (["export"], "name an experiment"),
        (["export", "--topology", "ft,5"], "even number"),
    ):
        found = refabric(*wrong)
        assert found.exit_code == 2 and words in found.output


@pytest.mark.parametrize(
    ("network", "form", "rate", "words"),
    [
        ("star,4", "htsim", 10_000, "neither a FatTree nor a leaf-spine"),
        ("ft,4", "htsim", 100, "not a whole number of Gb/s"),
        ("bcube,4,2", "json", 100, "its hosts forward packets"),
    ],
)
def test_what_a_format_cannot_say_is_refused(network: str, form: str, rate: float, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        writers.FORMATS[form][1](topos.build(*topos.parse(network)), rate)
