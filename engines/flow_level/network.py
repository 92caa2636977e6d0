"""What flow-level models see of a point: capacities, and which ports data and acknowledgements load. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FULL = 2e-3
"""Shares of a capacity that differ by less are alike: the accuracy of all rates here."""


def firsts(ascending: Ints) -> Ints:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.diff(ascending, prepend=-1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Crossings:
    """Which subflow crosses which port, one entry a crossing, ordered by subflow."""

    subflow: Ints
    port: Ints

    @classmethod
    def of(cls, paths: Sequence[Sequence[int]]) -> Crossings:
        """Of one path, a sequence of ports, a subflow."""
        lengths = [len(path) for path in paths]
        ports = np.fromiter((port for path in paths for port in path), np.int64, sum(lengths))
        return cls(np.repeat(np.arange(len(paths), dtype=np.int64), lengths), ports)

    @cached_property
    def _first(self) -> Ints:
        return firsts(self.subflow)

    def load(self, rates: Floats, ports: int) -> Floats:
        """What every port carries if each subflow sends at its rate."""
        carried: Floats = np.bincount(self.port, rates[self.subflow], ports).astype(np.float64)
        return carried

    def sums(self, of_port: Floats) -> Floats:
        """Of every subflow, the sum over the ports it crosses."""
        sums: Floats = np.add.reduceat(of_port[self.port], self._first)
        return sums

    def least(self, of_port: Floats) -> Floats:
        """Of every subflow, the least value among the ports it crosses."""
        least: Floats = np.minimum.reduceat(of_port[self.port], self._first)
        return least

    def only(self, subflows: npt.NDArray[np.bool_]) -> Crossings:
        """Those of the subflows chosen."""
        chosen = subflows[self.subflow]
        return Crossings(self.subflow[chosen], self.port[chosen])


@dataclass(frozen=True, eq=False)
class FluidNetwork:
    """The capacity of every port; the ports every subflow's data crosses `there`, and its acknowledgements
    `back`; of every subflow, its connection (ascending from 0), its congestion control, and what its
    acknowledgements load a port with for each unit of data. Rates are on the wire, headers included, in any
    one unit."""

    capacity: Floats
    there: Crossings
    back: Crossings
    ack_share: Floats
    connection: Ints
    cc: tuple[str, ...]

    def ack_loads(self, rates: Floats) -> Floats:
        """What acknowledgements alone load every port with."""
        return self.back.load(rates * self.ack_share, len(self.capacity))

    def data_loads(self, rates: Floats) -> Floats:
        """What data alone loads every port with."""
        return self.there.load(rates, len(self.capacity))

    def loads(self, rates: Floats) -> Floats:
        """What every port carries."""
        return self.data_loads(rates) + self.ack_loads(rates)

    def fitted(self, rates: Floats) -> Floats:
        """The rates, less where a port is a little too full for them: none is then above its capacity."""
        room = np.maximum(self.capacity - self.ack_loads(rates), 0.0)
        data = self.data_loads(rates)
        passes = np.divide(room, data, out=np.ones_like(room), where=data > room)
        return rates * self.there.least(passes)
