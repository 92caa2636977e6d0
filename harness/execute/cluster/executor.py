"""The Executor of a Dask cluster: submits points, receives their events and fetches their files.

Dask chooses the worker and runs the points of a lost worker again on another one. At most as many points are
submitted as the workers can run at once. So a lost worker repeats few points, and Dask counts the loss
against few points that were only waiting there.
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
from harness.execute.cluster.worker import REPLY_S, Reply, run_on_worker
from harness.execute.executor import Event, Finished, Noted, Started
from harness.execute.point import Done, Task, fail, one_line
from harness.results.build import Build
from harness.results.store import Store
from model.reasons import BUG, ENDED, Reason
from model.spec import RunSpec

RESOURCE = "emulation"
"""The Dask resource of a worker (`--resources emulation=1`) whose machine may run points in real time."""
TICK_S = 1.0
CHECK_EVERY_S = 2.0
MAX_IDLE_S = 60.0
"""How long points wait for a worker to come back."""
MAX_LOST_WORKERS = 3
"""A point fails after this many workers were lost while they ran it."""


def offers(known: Mapping[str, Any]) -> bool:
    """Return whether a worker offers its machine for points in real time, by the scheduler's record of it."""
    return bool(known["resources"].get(RESOURCE, 0) >= 1)


def identity(client: Client, address: str) -> dict[str, Any]:
    """Return the scheduler's record of itself and its workers. Raises RunError if it is gone."""
    try:
        if client.scheduler is None:
            raise gone(address)
        return dict(call(client, client.scheduler.identity, n_workers=-1))
    except (OSError, TimeoutError) as error:
        raise gone(address) from error


def call(client: Client, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call an asynchronous method of the client or its scheduler in the client's event loop."""

    async def awaited() -> Any:
        return await method(*args, **options)

    return client.sync(awaited, callback_timeout=REPLY_S + 10.0)


def limit_losses(dask_scheduler: Scheduler) -> None:
    """Make the scheduler give up a point after `MAX_LOST_WORKERS`; by default it allows one more."""
    dask_scheduler.allowed_failures = MAX_LOST_WORKERS - 1


def gone(address: str) -> RunError:
    """Return the error for a scheduler that does not reply any more."""
    return RunError(
        f"the Dask scheduler at {address} is gone: finished points are kept; start it and its workers, then "
        "run the same command again"
    )


def needs_machine(engine: Engine, spec: RunSpec) -> bool:
    """Return whether the point needs a machine to itself."""
    return only(engine, {spec.engine}).parallel == 1


@dataclass
class _Point:
    """A submitted point; `workers` are the addresses of those that started it, in order."""

    task: Task
    alone: bool
    future: Future[Reply]
    since: float
    workers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Message:
    key: str
    what: str
    text: str = ""
    worker: str = ""


class DaskExecutor:
    """The Executor of a Dask cluster."""

    def __init__(self, client: Client, address: str, engine: Engine, where: Store, build: Build) -> None:
        self._client, self._address, self._engine, self._store = client, address, engine, where
        self._build = build
        self._topic = f"refabric-{secrets.token_hex(4)}"
        self._messages: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._points: dict[str, _Point] = {}
        self._submitted = 0
        self._threads, self._offers = self._room()
        self._checked = self._had_workers = time.monotonic()

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

    def run(self, tasks: Iterable[Task]) -> Iterator[Event]:
        """Run the tasks as `Executor.run` does."""
        waiting: dict[bool, deque[Task]] = {True: deque(), False: deque()}
        for task in tasks:
            waiting[needs_machine(self._engine, task.spec)].append(task)
        while self._points or any(waiting.values()):
            for alone, those in waiting.items():
                while those and self._has_room(alone):
                    self._submit(those.popleft(), alone)
            with contextlib.suppress(queue.Empty):
                yield from self._receive(self._messages.get(timeout=TICK_S))
            self._check_workers([alone for alone, those in waiting.items() if those])

    def _logged(self, event: tuple[float, Mapping[str, str]]) -> None:
        self._messages.put(_Message(**event[1]))

    def _has_room(self, alone: bool) -> bool:
        busy_alone = sum(point.alone for point in self._points.values())
        if alone:
            return busy_alone < self._offers
        return len(self._points) < self._threads

    def _submit(self, task: Task, alone: bool) -> None:
        self._submitted += 1
        key = f"{self._topic}-{self._submitted}"
        future = self._client.submit(
            run_on_worker, task, self._engine, self._build, self._topic,
            key=key, pure=False, resources={RESOURCE: 1} if alone else None,
        )  # fmt: skip
        self._points[key] = _Point(task, alone, future, time.monotonic())
        self._listen(key, future)

    def _listen(self, key: str, future: Future[Reply]) -> None:
        future.add_done_callback(lambda _: self._messages.put(_Message(key, "done")))

    def _receive(self, message: _Message) -> Iterator[Event]:
        point = self._points.get(message.key)
        if point is None:
            return  # the point has ended
        if message.what == "started":
            yield from self._started(point, message)
        elif message.what == "note":
            yield Noted(point.task, f"{message.text} (on {message.worker})")
        else:
            yield from self._done(point, message.key)

    def _started(self, point: _Point, message: _Message) -> Iterator[Event]:
        before, point.workers = point.workers, [*point.workers, message.worker]
        if not before:
            yield Started(point.task, message.worker)
        else:
            yield Noted(point.task, f"started again on {message.worker}: {before[-1]} was lost")

    def _failed(self, point: _Point, reason: Reason) -> Done:
        return fail(point.task, reason, self._store, time.monotonic() - point.since)

    def _done(self, point: _Point, key: str) -> Iterator[Event]:
        status = point.future.status
        if status == "cancelled":  # by the scheduler: points cancelled here are not in self._points
            raise gone(self._address)
        if status == "error":
            yield from self._raised(point, key)
        elif (reply := self._fetched(point, key)) is not None:
            yield from self._finished(point, key, self._stored(point, reply))

    def _fetched(self, point: _Point, key: str) -> Reply | None:
        """Return the files of a point; None if they were lost with their worker and the point runs again."""
        try:
            return point.future.result(timeout=REPLY_S)
        except TimeoutError:
            self._listen(key, point.future)
            return None
        except (CommClosedError, FutureCancelledError) as error:
            raise gone(self._address) from error

    def _raised(self, point: _Point, key: str) -> Iterator[Event]:
        error = point.future.exception(timeout=REPLY_S)
        if isinstance(error, KilledWorker):
            last = error.last_worker.address
            reason = Reason(ENDED, f"{MAX_LOST_WORKERS} workers were lost while running it, last {last}")
        elif isinstance(error, RefabricError):
            raise error
        else:
            where = ", ".join(point.workers[-1:]) or "a worker"
            reason = Reason(BUG, one_line(f"a bug on {where}: {type(error).__name__}: {error}"))
        yield from self._finished(point, key, self._failed(point, reason))

    def _stored(self, point: _Point, reply: Reply) -> Done:
        if reply.packed is None:
            return Done(None, reply.attempt)
        with self._store.writing(point.task.spec) as writer:
            return Done(writer.adopt(reply.packed), reply.attempt)

    def _finished(self, point: _Point, key: str, done: Done) -> Iterator[Event]:
        del self._points[key]
        if not point.workers:
            yield Started(point.task)
        yield Finished(point.task, done)

    def _room(self) -> tuple[int, int]:
        """Return the number of threads, and of workers that offer emulation. Raises RunError."""
        workers = identity(self._client, self._address)["workers"].values()
        threads = sum(worker["nthreads"] for worker in workers)
        return threads, sum(map(offers, workers))

    def _check_workers(self, waiting: Sequence[bool]) -> None:
        """Update the workers every CHECK_EVERY_S. Raises RunError if points lack one for MAX_IDLE_S."""
        now = time.monotonic()
        if now - self._checked < CHECK_EVERY_S:
            return
        self._checked = now
        if self._client.status != "running":
            raise gone(self._address)
        self._threads, self._offers = self._room()
        kinds = {*waiting, *(point.alone for point in self._points.values())}
        if self._threads and (self._offers or True not in kinds):
            self._had_workers = now
        elif now - self._had_workers > MAX_IDLE_S:
            what = f"that offers {RESOURCE} " if self._threads else ""
            raise RunError(
                f"{self._address} has had no worker {what}for {MAX_IDLE_S:.0f} s: finished points are kept; "
                "start workers again, then run the same command again"
            )
