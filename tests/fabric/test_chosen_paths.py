"""A path chosen for a flow overrides routing, for that flow only and until it is cleared."""

from __future__ import annotations

import pytest

from controllers.groups import ecmp_groups
from controllers.hashing import FiveTuple
from controllers.routing import path
from engines.scheduling import numbers
from fabric._core import VirtualFabric
from model.network_plan import network_plan, ports_along
from model.spec import LinkSpec
from topos import build

FT4 = build("ft", {"k": 4})
TABLES = ecmp_groups(FT4)
FOREVER = 10**15
FLOW = FiveTuple("10.0.0.2", "10.3.1.3", 6, 40000, 5001)
OTHER = FiveTuple("10.0.0.2", "10.3.1.3", 6, 40001, 5001)


def _fabric() -> VirtualFabric:
    return VirtualFabric(network_plan(FT4, TABLES, LinkSpec(10.0), "hashed", 5))


def _carried(fabric: VirtualFabric, flow: FiveTuple, when_ps: int) -> set[int]:
    """Return the ports that a packet passes."""
    before = fabric.counters()["tx_packets"].copy()
    fabric.inject(when_ps, 0, 1000, numbers(flow))
    [(_, _, _, dropped, _)] = fabric.run_until(when_ps + 10**11)
    assert not dropped
    return set((fabric.counters()["tx_packets"] - before).nonzero()[0].tolist())


def _elsewhere() -> list[int]:
    usual = path(FT4, TABLES, "hashed", 5, FLOW)
    return next(ports_along(FT4, p) for p in FT4.shortest_paths(usual[0], usual[-1]) if p != usual)


def test_the_chosen_path_is_taken_by_its_flow_alone() -> None:
    fabric, chosen = _fabric(), _elsewhere()
    usual, others = _carried(fabric, FLOW, 0), _carried(fabric, OTHER, 10**12)
    assert usual == set(ports_along(FT4, path(FT4, TABLES, "hashed", 5, FLOW)))
    fabric.set_path(numbers(FLOW), chosen)
    assert _carried(fabric, FLOW, 2 * 10**12) == set(chosen) != usual
    assert _carried(fabric, OTHER, 3 * 10**12) == others
    fabric.clear_path(numbers(FLOW))
    assert _carried(fabric, FLOW, 4 * 10**12) == usual
    fabric.clear_path(numbers(FLOW))


def test_packets_under_way_go_on_as_they_began() -> None:
    fabric, chosen = _fabric(), _elsewhere()
    usual = ports_along(FT4, path(FT4, TABLES, "hashed", 5, FLOW))
    fabric.inject(0, 0, 1000, numbers(FLOW))
    fabric.set_path(numbers(FLOW), chosen)
    fabric.run_until(FOREVER)
    assert fabric.counters()["tx_packets"].nonzero()[0].tolist() == sorted(usual)


@pytest.mark.parametrize(
    ("ports", "complaint"),
    [
        ([], "no link"),
        ([0, 10**6], "does not exist"),
        ([2, 3], "does not join"),
        ([0, 2], "does not join"),
        ([0] * 11, "more than 10 links"),
    ],
)
def test_what_is_no_path_of_the_flow_is_refused(ports: list[int], complaint: str) -> None:
    with pytest.raises((ValueError, IndexError), match=complaint):
        _fabric().set_path(numbers(FLOW), ports)
    with pytest.raises(ValueError, match="no host"):
        _fabric().set_path(numbers(FiveTuple("10.0.0.2", "10.99.0.1", 6, 1, 2)), _elsewhere())
