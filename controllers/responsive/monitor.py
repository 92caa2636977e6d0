"""The monitor of one sender: it measures its flows' rates and asks for paths where a demand is not met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.hashing import FiveTuple
from controllers.responsive.settings import NEW_WEIGHT, OLD_WEIGHT, Settings

Path = tuple[str, ...]
"""The names of a path's nodes, host to host."""


@dataclass(frozen=True)
class Request:
    """A flow whose rate is `gap_mbps` below its demand, and the numbers of the subflows that it has."""

    flow: FiveTuple
    gap_mbps: float
    subflows: tuple[int, ...]


@dataclass
class Watched:
    """A flow at its monitor. `smoothed_mbps` is the moving average of its rate, `steady` the number of
    checks in a row in which the rate was close to it, `paths` those of its subflows, by their numbers."""

    octets: int
    read_s: float
    demand_mbps: float | None = None
    smoothed_mbps: float = 0.0
    steady: int = 0
    paths: dict[int, Path] = field(default_factory=dict)


class Monitor:
    """Flows of one sender, by the 5-tuple of their first subflow."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._flows: dict[FiveTuple, Watched] = {}

    @property
    def flows(self) -> Mapping[FiveTuple, Watched]:
        return self._flows

    def begin(self, flow: FiveTuple, octets: int, now_s: float) -> None:
        self._flows[flow] = Watched(octets, now_s)

    def end(self, flow: FiveTuple) -> None:
        self._flows.pop(flow, None)

    def restart(self, octets: Mapping[FiveTuple, int], now_s: float) -> None:
        """Begin to measure anew. Flows and the paths of their subflows are still known, demands are not."""
        for flow, watched in self._flows.items():
            fresh = Watched(octets.get(flow, watched.octets), now_s, paths=watched.paths)
            self._flows[flow] = fresh

    def set_demand(self, flow: FiveTuple, mbps: float) -> None:
        """Note the demand that the controller has sent; no effect after the flow's end."""
        if flow in self._flows:
            self._flows[flow].demand_mbps = mbps

    def set_subflow(self, flow: FiveTuple, number: int, path: Path | None) -> None:
        """Note a subflow's path; None: it was closed. This restarts the count of steady checks."""
        if flow not in self._flows:
            return
        self._flows[flow].paths.pop(number, None)
        if path is not None:
            self._flows[flow].paths[number] = path
        self._flows[flow].steady = 0

    def tick(self, octets: Mapping[FiveTuple, int], now_s: float) -> list[Request]:
        """Check every flow and return requests. `octets` has the bytes that each flow has sent."""
        asked = []
        for flow, watched in self._flows.items():
            if flow not in octets or now_s <= watched.read_s:
                continue
            self._measure(watched, octets[flow], now_s)
            if watched.steady < self._settings.checks or not self._lacks(watched):
                continue
            assert watched.demand_mbps is not None
            gap_mbps = watched.demand_mbps - watched.smoothed_mbps
            asked.append(Request(flow, gap_mbps, tuple(sorted(watched.paths))))
            watched.steady = 0
            if self._settings.one_per_tick:
                break
        return asked

    def _measure(self, watched: Watched, octets: int, now_s: float) -> None:
        rate_mbps = (octets - watched.octets) * 8e-6 / (now_s - watched.read_s)
        watched.octets, watched.read_s = octets, now_s
        watched.smoothed_mbps = OLD_WEIGHT * watched.smoothed_mbps + NEW_WEIGHT * rate_mbps
        variation = abs(rate_mbps - watched.smoothed_mbps)
        is_steady = variation < self._settings.rate_variation * watched.smoothed_mbps
        watched.steady = watched.steady + 1 if is_steady else 0

    def _lacks(self, watched: Watched) -> bool:
        if watched.demand_mbps is None:
            return False
        return watched.smoothed_mbps < (1 - self._settings.demand_gap) * watched.demand_mbps
