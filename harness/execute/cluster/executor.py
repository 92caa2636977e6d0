"""The Crew of a Dask cluster: hands points out, hears what becomes of them, and fetches their files.

Dask chooses the worker, and has another one redo the points of a lost one. No more points are handed out
than there is room for: whoever is lost, few are redone, and few but those it was running are suspected.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from distributed import Client, Future, KilledWorker, Scheduler
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError

from common.errors import RefabricError, RunError
from engines.dispatch import only
from engines.engine import Engine
from harness.execute.build import Build
from harness.execute.cluster.worker import ANSWER_S, Reply, carry
from harness.execute.executor import Finished, Noted, Started, Told
from harness.execute.point import Done, Order, fail, one_line
from harness.results.store import Store
from model.spec import RunSpec

RESOURCE = "emulation"
"""What a worker offers (`--resources emulation=1`) on whose machine points may run in real time."""
TICK_S = 1.0
LOOK_EVERY_S = 2.0
UNMANNED_S = 60.0
"""How long points wait for a worker to come back."""
MOST_LOST = 3
"""A point to which so many workers were lost fails."""


def offers(known: Mapping[str, Any]) -> bool:
    """Whether a worker, by what its scheduler knows, offers its machine for points in real time."""
    return bool(known["resources"].get(RESOURCE, 0) >= 1)


def identity(client: Client, address: str) -> dict[str, Any]:
    """What the scheduler knows. Raises RunError where it is gone."""
    try:
        if client.scheduler is None:
            raise gone(address)
        return dict(answered(client, client.scheduler.identity, n_workers=-1))
    except (OSError, TimeoutError) as error:
        raise gone(address) from error


def answered(client: Client, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Await what a method of the client, or of its scheduler, does in the client's own loop, for so long."""

    async def asked() -> Any:
        return await function(*args, **more)

    return client.sync(asked, callback_timeout=ANSWER_S + 10.0)


def limit_losses(dask_scheduler: Scheduler) -> None:
    """Have the scheduler give up a point to which `MOST_LOST` workers were lost; unless told it takes one
    more."""
    dask_scheduler.allowed_failures = MOST_LOST - 1


def gone(address: str) -> RunError:
    return RunError(
        f"the Dask scheduler at {address} is gone: finished points are kept; start it and its workers, then "
        "run the same command again"
    )


def wants_machine(engine: Engine, spec: RunSpec) -> bool:
    """Whether the point wants a machine for itself."""
    return only(engine, {spec.engine}).parallel == 1


@dataclass
class _Point:
    """One that was handed out; `begun` are the workers that began with it, in turn."""

    order: Order
    alone: bool
    future: Future[Reply]
    since: float
    begun: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Event:
    key: str
    what: str
    text: str = ""
    worker: str = ""


class DaskCrew:
    """The Crew of a cluster."""

    def __init__(self, client: Client, address: str, engine: Engine, where: Store, made_from: Build) -> None:
        self._client, self._address, self._engine, self._store = client, address, engine, where
        self._build = made_from
        self._topic = f"refabric-{secrets.token_hex(4)}"
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._points: dict[str, _Point] = {}
        self._handed_out = 0
        self._threads, self._offers = self._room()
        self._looked = self._manned = time.monotonic()

    def __enter__(self) -> Self:
        self._client.subscribe_topic(self._topic, self._logged)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):  # the scheduler may be gone
            self._client.cancel([point.future for point in self._points.values()])
            self._client.unsubscribe_topic(self._topic)
        self._points.clear()
        self._store.clean_up()

    def run(self, orders: Iterable[Order]) -> Iterator[Told]:
        """As `Crew.run`."""
        waiting: dict[bool, deque[Order]] = {True: deque(), False: deque()}
        for order in orders:
            waiting[wants_machine(self._engine, order.spec)].append(order)
        while self._points or any(waiting.values()):
            for alone, those in waiting.items():
                while those and self._has_room(alone):
                    self._hand_out(those.popleft(), alone)
            with contextlib.suppress(queue.Empty):
                yield from self._hear(self._events.get(timeout=TICK_S))
            self._look([alone for alone, those in waiting.items() if those])

    def _logged(self, event: tuple[float, Mapping[str, str]]) -> None:
        self._events.put(_Event(**event[1]))

    def _has_room(self, alone: bool) -> bool:
        busy_alone = sum(point.alone for point in self._points.values())
        if alone:
            return busy_alone < self._offers
        return len(self._points) < self._threads

    def _hand_out(self, order: Order, alone: bool) -> None:
        self._handed_out += 1
        key = f"{self._topic}-{self._handed_out}"
        future = self._client.submit(
            carry, order, self._engine, self._build, self._topic,
            key=key, pure=False, resources={RESOURCE: 1} if alone else None,
        )  # fmt: skip
        self._points[key] = _Point(order, alone, future, time.monotonic())
        self._listen(key, future)

    def _listen(self, key: str, future: Future[Reply]) -> None:
        future.add_done_callback(lambda _: self._events.put(_Event(key, "done")))

    def _hear(self, event: _Event) -> Iterator[Told]:
        point = self._points.get(event.key)
        if point is None:
            return  # of a point that is over
        if event.what == "begun":
            yield from self._begun(point, event)
        elif event.what == "note":
            yield Noted(point.order, f"{event.text} (on {event.worker})")
        else:
            yield from self._done(point, event.key)

    def _begun(self, point: _Point, event: _Event) -> Iterator[Told]:
        before, point.begun = point.begun, [*point.begun, event.worker]
        if not before:
            yield Started(point.order, event.worker)
        else:
            yield Noted(point.order, f"begun again on {event.worker}: {before[-1]} was lost")

    def _failed(self, point: _Point, reason: str) -> Done:
        return fail(point.order, one_line(reason), self._store, time.monotonic() - point.since)

    def _done(self, point: _Point, key: str) -> Iterator[Told]:
        status = point.future.status
        if status == "cancelled":  # not by us: then it is not among the points any more
            raise gone(self._address)
        if status == "error":
            yield from self._erred(point, key)
        elif (reply := self._fetched(point, key)) is not None:
            yield from self._over(point, key, self._stored(point, reply))

    def _fetched(self, point: _Point, key: str) -> Reply | None:
        """The files of a point; None where they were lost with their worker and it is being redone."""
        try:
            return point.future.result(timeout=ANSWER_S)
        except TimeoutError:
            self._listen(key, point.future)
            return None
        except (CommClosedError, FutureCancelledError) as error:
            raise gone(self._address) from error

    def _erred(self, point: _Point, key: str) -> Iterator[Told]:
        error = point.future.exception(timeout=ANSWER_S)
        if isinstance(error, KilledWorker):
            what = f"{MOST_LOST} workers were lost while they ran it, the last {error.last_worker.address}"
        elif isinstance(error, RefabricError):
            raise error
        else:
            what = f"a bug on {', '.join(point.begun[-1:]) or 'a worker'}: {type(error).__name__}: {error}"
        yield from self._over(point, key, self._failed(point, what))

    def _stored(self, point: _Point, reply: Reply) -> Done:
        if reply.packed is None:
            return Done(None, reply.attempt)
        with self._store.writing(point.order.spec) as writer:
            return Done(writer.adopt(reply.packed), reply.attempt)

    def _over(self, point: _Point, key: str, done: Done) -> Iterator[Told]:
        del self._points[key]
        if not point.begun:
            yield Started(point.order)
        yield Finished(point.order, done)

    def _room(self) -> tuple[int, int]:
        """Threads there are, and workers that offer for emulation. Raises RunError."""
        workers = identity(self._client, self._address)["workers"].values()
        threads = sum(worker["nthreads"] for worker in workers)
        return threads, sum(map(offers, workers))

    def _look(self, waiting: Sequence[bool]) -> None:
        """See, now and then, which workers there are. Raises RunError where points wait for none."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY_S:
            return
        self._looked = now
        if self._client.status != "running":
            raise gone(self._address)
        self._threads, self._offers = self._room()
        kinds = {*waiting, *(point.alone for point in self._points.values())}
        if self._threads and (self._offers or True not in kinds):
            self._manned = now
        elif now - self._manned > UNMANNED_S:
            what = f"that offers {RESOURCE} " if self._threads else ""
            raise RunError(
                f"{self._address} has had no worker {what}for {UNMANNED_S:.0f} s: finished points are kept; "
                "start workers again, then run the same command again"
            )
