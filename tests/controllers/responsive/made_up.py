"""Connections at given rates, for the controller and its monitors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import topos
from controllers.hashing import FiveTuple
from controllers.responsive.controller import Settings, SubflowController
from controllers.responsive.loop import Loop, News
from topos.topology import Topology

NS_PER_MS = 1_000_000


def fat_tree(k: int = 4) -> Topology:
    return topos.build("fat_tree", {"k": k})


def flow_between(topology: Topology, src: str, dst: str, sport: int = 1000) -> FiveTuple:
    ips = [topology.nics_of(topology.index(name))[0].ip for name in (src, dst)]
    return FiveTuple(ips[0], ips[1], 6, sport, 5001)


def controller_of(
    topology: Topology, settings: Settings, rate_mbps: float = 1000.0, seed: int = 1
) -> SubflowController:
    return SubflowController(topology, rate_mbps, settings, seed)


@dataclass
class Rates:
    """A network whose connections carry `mbps_per_subflow` on each subflow, up to `most_mbps`."""

    mbps_per_subflow: float
    most_mbps: float = 1000.0
    paths: dict[FiveTuple, dict[int, tuple[str, ...]]] = field(default_factory=dict)
    octets: dict[FiveTuple, int] = field(default_factory=dict)
    refused: int = 0
    now_ns: int = 0

    def begin(self, flow: FiveTuple) -> None:
        self.octets[flow] = 0

    def end(self, flow: FiveTuple) -> None:
        del self.octets[flow]

    def pass_ns(self, ns: int) -> None:
        for flow in self.octets:
            rate = min(self.most_mbps, self.mbps_per_subflow * max(1, len(self.paths.get(flow, ()))))
            self.octets[flow] += round(rate * ns / 8000)

    def connections(self) -> Mapping[FiveTuple, int]:
        return dict(self.octets)

    def running(self) -> frozenset[FiveTuple]:
        return frozenset(self.octets)

    def open_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        assert number not in self.paths.get(flow, {})
        return self.move_subflow(flow, number, path)

    def move_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        if flow not in self.octets:
            self.refused += 1
            return False
        self.paths.setdefault(flow, {})[number] = tuple(path)
        return True

    def close_subflow(self, flow: FiveTuple, number: int) -> bool:
        if flow not in self.octets:
            return False
        assert number > 0
        del self.paths[flow][number]
        return True


def looped(
    topology: Topology,
    settings: Settings,
    flow: FiveTuple,
    mbps_per_subflow: float = 500.0,
    seed: int = 1,
    news: Sequence[News] = (),
) -> tuple[Loop, Rates, SubflowController]:
    """Return a loop and its network, in which this flow has begun, and its controller."""
    controller, network = controller_of(topology, settings), Rates(mbps_per_subflow)
    network.begin(flow)
    return Loop(settings, controller, seed, news=news), network, controller


def drive(loop: Loop, network: Rates, until_ms: float) -> None:
    """Run until `until_ms` after the start."""
    while loop.next_ns <= until_ms * NS_PER_MS:
        due_ns = loop.next_ns
        network.pass_ns(due_ns - network.now_ns)
        network.now_ns = due_ns
        loop.run(network, due_ns)
