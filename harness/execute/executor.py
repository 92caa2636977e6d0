"""Who carries out the points of a sweep, as the sweep sees it: it hands out orders and is told what becomes
of them. What does the work is in workers.py (processes of this machine) and cluster.py (a Dask cluster)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from engines.engine import Engine, Observer
from harness.execute.point import Done, Order, carry_out
from harness.results.store import Store


@dataclass(frozen=True)
class Started:
    """A point has been begun; `worker` says where, if not on this machine."""

    order: Order
    worker: str = ""


@dataclass(frozen=True)
class Noted:
    """What an engine, or the crew, thought worth telling the user."""

    order: Order
    text: str


@dataclass(frozen=True)
class Finished:
    """A point is stored."""

    order: Order
    done: Done


Told = Started | Noted | Finished


class Crew(Protocol):
    """Carries out points, ended on leaving: nothing of it runs on, and nothing unfinished lies about."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, orders: Iterable[Order]) -> Iterator[Told]:
        """Carry out all orders, each told as Started once and then as Finished. Raises what ends a sweep:
        StoreError, HostUnfitError, RunError."""


class InTurn:
    """One point after the other, in this process; the observer is told of each one's phases."""

    def __init__(self, engine: Engine, where: Store, observer: Observer) -> None:
        self._engine, self._store, self._observer = engine, where, observer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing of it runs on."""

    def run(self, orders: Iterable[Order]) -> Iterator[Told]:
        """As `Crew.run`."""
        for order in orders:
            yield Started(order)
            yield Finished(order, carry_out(order, self._engine, self._store, self._observer))
