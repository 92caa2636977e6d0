"""The numbers that switches and ports have towards OpenFlow."""

from __future__ import annotations

import pytest

from common.errors import UsageError
from topos import TOPOLOGIES, Kind, build
from topos.ports import SwitchPorts, dpid


@pytest.mark.parametrize("kind", [kind for kind, family in TOPOLOGIES.items() if not family.size.text])
def test_every_link_end_at_a_switch_has_one_port_and_ports_count_from_one(kind: str) -> None:
    topology = build(kind, {TOPOLOGIES[kind].size.name: max(2, TOPOLOGIES[kind].size.minimum)})
    ports = SwitchPorts(topology)
    ends = 0
    for switch, links in ports.links.items():
        assert [ports.port_of(switch, link) for link in links] == list(range(1, len(links) + 1))
        assert list(links) == sorted(links)
        for port, link in enumerate(links, start=1):
            assert ports.link_at(switch, port) == link
            assert {switch, ports.neighbour(switch, port)} == set(topology.links[link].ends)
            assert ports.towards(switch, ports.neighbour(switch, port)) == port
        ends += len(links)
    at_switches = [topology.nodes[end].kind is Kind.SWITCH for link in topology.links for end in link.ends]
    assert ends == sum(at_switches)


def test_datapath_ids_are_node_indices_plus_one() -> None:
    topology = build("ft", {"k": 4})
    ports = SwitchPorts(topology)
    assert [dpid(switch) for switch in topology.switches] == list(range(17, 37))
    assert all(ports.switch(dpid(switch)) == switch for switch in topology.switches)


@pytest.mark.parametrize("wrong", [0, 1, 16, 37])
def test_a_datapath_id_of_no_switch_is_refused(wrong: int) -> None:
    with pytest.raises(UsageError, match="no switch with datapath id"):
        SwitchPorts(build("ft", {"k": 4})).switch(wrong)


def test_ports_that_are_not_there_are_refused() -> None:
    topology = build("ft", {"k": 4})
    ports, edge = SwitchPorts(topology), topology.index("p0e0")
    for port in (0, 5):
        with pytest.raises(UsageError, match="no port"):
            ports.link_at(edge, port)
    with pytest.raises(UsageError, match="no port"):
        ports.port_of(topology.index("p0e0h0"), 0)
