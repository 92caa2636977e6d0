"""The network of a flow-level model: capacities, and the ports that data and acknowledgements cross. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fabric._core import Crossings

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FULL = 2e-3
"""Relative accuracy of all rates here."""


def firsts(ascending: Ints) -> Ints:
    """Return the indices at which runs of equal numbers begin."""
    return np.flatnonzero(np.diff(ascending, prepend=-1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class FluidNetwork:
    """Capacities and paths of a point.

    Each subflow's data crosses the ports `there`, its acknowledgements the ports `back`. `connection`
    (ascending from 0) and `cc` are per subflow. `ack_share` is the load of acknowledgements per unit of
    data. Rates are on the wire, headers included, in any unit.
    """

    capacity: Floats
    there: Crossings
    back: Crossings
    ack_share: Floats
    connection: Ints
    cc: tuple[str, ...]

    def ack_loads(self, rates: Floats) -> Floats:
        """Return the load of acknowledgements on every port."""
        return self.back.load(rates * self.ack_share, len(self.capacity))

    def data_loads(self, rates: Floats) -> Floats:
        """Return the load of data on every port."""
        return self.there.load(rates, len(self.capacity))

    def loads(self, rates: Floats) -> Floats:
        """Return the total load on every port."""
        return self.data_loads(rates) + self.ack_loads(rates)

    def fitted(self, rates: Floats) -> Floats:
        """Return rates reduced where a port is overloaded, so that no port exceeds its capacity."""
        room = np.maximum(self.capacity - self.ack_loads(rates), 0.0)
        data = self.data_loads(rates)
        passes = np.divide(room, data, out=np.ones_like(room), where=data > room)
        return rates * self.there.least(passes)
