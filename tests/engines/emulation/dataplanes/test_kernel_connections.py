"""Real connections as the controller sees them: bytes of closed subflows, ports, and paths. Without hosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

import topos
from controllers.hashing import FiveTuple
from engines.emulation.dataplanes.control import KernelConnections
from engines.emulation.measure.socket_table import SocketTable
from engines.emulation.path_manager import PathManager
from model.flows import STRIDE, planned_flows
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec

SPEC = RunSpec(LinkSpec(10.0), topology=TopologySpec("fat_tree", {"k": 4}), transport=TransportSpec(3))
TREE = topos.build("fat_tree", {"k": 4})
FLOWS = planned_flows(SPEC, TREE)
PATH = ("a", "b", "c")


class Kernel:
    """Sockets by flow and local port, with the acknowledged payload of each, and the requests for them."""

    def __init__(self) -> None:
        self.acked: dict[tuple[int, int], int] = {}
        self.asked: list[tuple[Any, ...]] = []

    def read(self) -> SimpleNamespace:
        keys = list(self.acked)
        flow, lport = (np.array(column, np.int64) for column in zip(*keys, strict=True))
        return SimpleNamespace(flow=flow, lport=lport, bytes_acked=np.array([*self.acked.values()]) + 1)

    def open_subflow(self, client: tuple[str, int], number: int, lport: int | None = None) -> bool:
        self.asked.append(("open", client, number, lport))
        return True

    def close_subflow(self, client: tuple[str, int], number: int) -> bool:
        self.asked.append(("close", client, number))
        return True

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        self.asked.append(("path", flow.sport, tuple(path)))

    def clear_path(self, flow: FiveTuple) -> None:
        self.asked.append(("clear", flow.sport))


def connections(kernel: Kernel) -> KernelConnections:
    return KernelConnections(
        TREE, FLOWS, cast(SocketTable, kernel), cast(Any, kernel), cast(PathManager, kernel)
    )


def test_bytes_of_a_closed_subflow_stay_counted() -> None:
    kernel, first = Kernel(), FLOWS[0].cport
    network = connections(kernel)
    kernel.acked = {(0, first): 1000, (0, first + STRIDE): 500}
    assert [each.octets for each in network.connections()] == [1500]
    kernel.acked = {(0, first): 1200}
    assert [each.octets for each in network.connections()] == [1700]
    kernel.acked = {(0, first): 1200, (0, first + STRIDE + 17): 300}
    assert [each.octets for each in network.connections()] == [2000]


def test_a_subflow_gets_its_path_before_it_opens_and_another_port_each_time() -> None:
    kernel, flow = Kernel(), FLOWS[0]
    network = connections(kernel)
    kernel.acked = {(0, flow.cport): 1000}
    [seen] = network.connections()
    client = (flow.src_ip, flow.cport)
    usual = flow.cport + STRIDE
    for port in (usual, usual + 17, usual + 34):
        kernel.asked.clear()
        assert network.open_subflow(seen.flow, 1, PATH)
        assert network.move_subflow(seen.flow, 1, PATH[::-1])
        assert network.close_subflow(seen.flow, 1)
        assert kernel.asked == [
            ("path", port, PATH),
            ("open", client, 1, port),
            ("path", port, PATH[::-1]),
            ("close", client, 1),
            ("clear", port),
        ]


def test_connections_that_are_not_there_are_left_alone() -> None:
    kernel = Kernel()
    network = connections(kernel)
    kernel.acked = {(0, FLOWS[0].cport): 1000}
    [seen] = network.connections()
    gone = dataclasses.replace(seen.flow, sport=9)
    assert not network.open_subflow(gone, 1, PATH) and not network.move_subflow(gone, 0, PATH)
    assert not kernel.asked
