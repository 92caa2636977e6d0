"""Queue lengths of a point as a matrix, from its sample tables; for the charts of queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from model.result import PortRow
from plots.data import Point, of_switch

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Lengths:
    """`pkts[i, j]` is the length at `t_s[i]` of the queue of `ports[j]`; t_s counts from the opening of the
    measured window, the warm-up is negative."""

    point: Point
    ports: tuple[PortRow, ...]
    t_s: npt.NDArray[np.float64]
    pkts: npt.NDArray[np.int32]

    @property
    def of_switches(self) -> Lengths:
        """The lengths without the hosts' own queues."""
        kept = [i for i, port in enumerate(self.ports) if of_switch(port)]
        return Lengths(self.point, tuple(self.ports[i] for i in kept), self.t_s, self.pkts[:, kept])

    @property
    def window(self) -> npt.NDArray[np.int32]:
        """The lengths of the measured window alone; all of them where no sample falls into it."""
        measured = self.t_s >= 0
        return self.pkts[measured] if measured.any() else self.pkts


def read(point: Point) -> Lengths | None:
    """Return the queue length of every port at every sampled instant; None where they were not sampled.

    Zeros are left out of the table, so that the ports come from the point and the instants from their own
    table; without that one, from the instants at which any queue was not empty.
    """
    table = point.read_table("queues")
    if table is None or not point.ports:
        return None
    times = point.read_table("queue_times")
    t_s = np.unique((table if times is None else times)["t_s"].astype(float))
    if not len(t_s):
        return None
    ports = tuple(sorted(point.ports, key=lambda port: port.port))
    pkts = np.zeros((len(t_s), len(ports)), np.int32)
    instants, timed = _places(t_s, table["t_s"].astype(float))
    columns, known = _places(np.array([port.port for port in ports]), table["port"].astype(int))
    both = timed & known
    pkts[instants[both], columns[both]] = table["pkts"][both]
    return Lengths(point, ports, t_s, pkts)


def _places(ordered: npt.NDArray[Any], values: npt.NDArray[Any]) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the position of each value in `ordered`, and whether it is there."""
    found = np.searchsorted(ordered, values).clip(max=len(ordered) - 1)
    return found, ordered[found] == values
