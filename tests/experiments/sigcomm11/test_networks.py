"""Oversubscribed and dual-homed trees and BCube: size, cost, what is run, and that a small part runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import topos
from engines.registry import make
from experiments.sigcomm11 import oversubscribed, several_nics, topologies
from experiments.sigcomm11.topologies import EXPERIMENT, SWITCHED, all_networks
from harness.claims.claims import AGREES
from harness.experiment import Figure
from harness.options.options import resolve
from model.spec import TopologySpec
from tests.support.figures import events_of, points_of, refabric
from tests.support.options import options_typed

pytestmark = pytest.mark.usefixtures("in_this_process")

BCUBE = next(f for f in topologies.EXPERIMENT.figures if f.name == "topologies-bcube")
FIGURES = (*oversubscribed.FIGURES, *several_nics.FIGURES, BCUBE)


def ports_and_switches(kind: str, k: int) -> tuple[int, int, int]:
    """Return the numbers of switch ports in use, of switches and of hosts."""
    topology = topos.build(kind, {"k": k})
    ends = [node for link in topology.links for node in (link.a, link.b)]
    ports = Counter(node for node in ends if node not in topology.hosts)
    assert max(ports.values()) <= k
    return sum(ports.values()), len(ports), len(topology.hosts)


@pytest.mark.parametrize(("k", "single", "dual"), [(6, (45, 54), (63, 72)), (12, (180, 432), (252, 576))])
def test_a_host_takes_five_switch_ports_in_either_tree(
    k: int, single: tuple[int, int], dual: tuple[int, int]
) -> None:
    for kind, expected in (("fat_tree", single), ("dual_homed_fat_tree", dual)):
        ports, switches, hosts = ports_and_switches(kind, k)
        assert (switches, hosts) == expected
        assert ports == 5 * hosts


def test_the_oversubscribed_tree_is_the_papers() -> None:
    figure = oversubscribed.FIGURES[0]
    (network,) = figure.topologies(resolve({}, figure.defaults))
    topology = topos.build(network.kind, network.params)
    below = Counter(link.b for link in topology.links if link.a in topology.hosts)
    assert len(topology.hosts) == 512 and set(below.values()) == {16}, "16 hosts share 4 uplinks"


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_engines_take_every_point(figure: Figure) -> None:
    for spec in points_of(figure):
        make(spec.engine).check(spec)


@pytest.mark.parametrize(
    ("name", "charts"),
    [
        ("oversubscribed-load", ["by_load-k4-connections.svg"]),
        ("dual-homed-load-matrices", ["by_matrix-k4.svg"]),
    ],
)
@pytest.mark.usefixtures("drawn")
def test_a_small_one_runs_and_is_drawn(name: str, charts: list[str], tmp_path: Path) -> None:
    done = refabric("run", name, "--k", "4", "--warmup", "0.5", "--seconds", "1", "--results", tmp_path)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.rglob("charts/*/*.svg")) == charts


def test_sparse_traffic_fills_several_nics_and_neighbours_fill_them_anyway(tmp_path: Path) -> None:
    short = ("--subflows", "1,3", "--workload", "connections:30,neighbours", "--warmup", "0.5")
    done = refabric("run", BCUBE.name, *short, "--seconds", "0.5", "--results", tmp_path, "--json")
    verdicts = {e["workload"]: e["verdict"] for e in events_of(done, "verdict") if e["measured"]}
    assert verdicts == {"connections:30": AGREES, "neighbours": AGREES}


FIGURE = EXPERIMENT.figures[0]


def hosts(network: TopologySpec) -> int:
    return len(topos.build(network.kind, network.params).hosts)


@pytest.mark.parametrize("k", [4, 6, 8, 12])
def test_sizes_are_comparable(k: int) -> None:
    """An oversubscribed tree has up to four times the hosts of the others."""
    networks = all_networks(resolve(options_typed(k=str(k)), FIGURE.defaults))
    assert len({topos.identity(n.kind, n.params) for n in networks}) == len(networks) == 6
    sizes = [hosts(network) for network in networks]
    usual = k**3 // 4
    assert all(0.5 * usual <= size <= 4 * usual and size % 2 == 0 for size in sizes)


def test_what_emulated_hosts_cannot_do_has_a_twin_without_it() -> None:
    """BCube's hosts forward."""
    (twin,) = SWITCHED.figures
    options = resolve(options_typed(engine="mininet"), twin.defaults)
    assert not any(topos.build(n.kind, n.params).hosts_forward for n in twin.topologies(options))
    assert any(topos.build(n.kind, n.params).hosts_forward for n in FIGURE.topologies(options))


@pytest.mark.usefixtures("drawn")
def test_neighbours_gain_nothing_from_several_paths(tmp_path: Path) -> None:
    short = ("--subflows", "1,8", "--warmup", "1", "--seconds", "1", "--results", tmp_path, "--json")
    done = refabric("run", "topologies-local", *short)
    assert [event["verdict"] for event in events_of(done, "verdict")] == [AGREES]
    assert len(list((tmp_path / "topologies" / "charts").rglob("by_network*.svg"))) == 1
