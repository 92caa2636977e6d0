"""The networks of `topologies`: of about one size, all different, and run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import topos
from common.errors import UsageError
from experiments.command import main
from experiments.sigcomm11.topologies import EXPERIMENT, SWITCHED, all_networks
from harness.claims.claims import AGREES
from harness.options.options import UserOptions, resolve
from model.spec import TopologySpec

pytestmark = pytest.mark.usefixtures("in_this_process")

FIGURE = EXPERIMENT.figures[0]


def hosts(network: TopologySpec) -> int:
    return len(topos.build(network.kind, network.params).hosts)


@pytest.mark.parametrize("k", [4, 6, 8, 12])
def test_sizes_are_comparable(k: int) -> None:
    """An oversubscribed tree has up to four times the hosts of the others."""
    networks = all_networks(resolve(UserOptions.of(k=str(k)), FIGURE.defaults))
    assert len({topos.identity(n.kind, n.params) for n in networks}) == len(networks) == 6
    sizes = [hosts(network) for network in networks]
    usual = k**3 // 4
    assert all(0.5 * usual <= size <= 4 * usual and size % 2 == 0 for size in sizes)


def test_what_emulated_hosts_cannot_do_has_a_twin_without_it() -> None:
    """BCube's hosts forward."""
    (twin,) = SWITCHED.figures
    options = resolve(UserOptions.of(engine="mininet"), twin.defaults)
    assert not any(topos.build(n.kind, n.params).hosts_forward for n in twin.topologies(options))
    assert any(topos.build(n.kind, n.params).hosts_forward for n in FIGURE.topologies(options))


def test_statements_are_about_networks_that_are_run() -> None:
    options = [resolve(UserOptions(), figure.defaults) for figure in EXPERIMENT.figures]
    for figure, given in zip(EXPERIMENT.figures, options, strict=True):
        assert figure.published, figure.name
        for row in figure.published:
            assert any(row.is_on(network) for network in figure.topologies(given)), row.words


def test_neighbours_gain_nothing_from_several_paths(tmp_path: Path) -> None:
    short = ("--subflows", "1,8", "--warmup", "1", "--seconds", "1")
    done = CliRunner().invoke(main, ["run", "topologies-local", *short, "--results", str(tmp_path), "--json"])
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["verdict"] for event in events if event["event"] == "verdict"] == [AGREES]
    assert len(list((tmp_path / "topologies" / "charts").rglob("by_network*.svg"))) == 1


def test_an_unknown_network_is_refused() -> None:
    with pytest.raises(UsageError):
        resolve(UserOptions.of(k="7"), FIGURE.defaults)
