"""Points of a sweep in processes of their own, as many at a time as there are workers.

A worker gets an order, runs and stores the point, and answers; one that dies costs its own point, which fails
and says how. Workers die with the process that started them (prctl(2), PR_SET_PDEATHSIG), whatever ends that;
it alone hears Ctrl-C. They are started afresh (spawn): nothing of the parent's threads is in them.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType

from engines.engine import Engine
from experiments import files
from experiments.point import Done, Order, carry_out, fail
from experiments.store import Store
from fabric.errors import HostUnfitError, RefabricError, StoreError

_SPAWN = multiprocessing.get_context("spawn")
_PR_SET_PDEATHSIG = 1
GRACE_S = 2.0
"""A worker told to end has nothing to tidy up: what it was writing is removed for it."""


@dataclass(frozen=True)
class Started:
    """A worker has begun with a point."""

    order: Order


@dataclass(frozen=True)
class Noted:
    """What an engine thought worth telling the user."""

    order: Order
    text: str


@dataclass(frozen=True)
class Finished:
    """A point is stored."""

    order: Order
    done: Done


Told = Started | Noted | Finished


@dataclass(frozen=True)
class _Ended:
    """An error that ends the sweep: what went wrong, and whether it was the store's."""

    text: str
    of_store: bool


class _Voice:
    """The Observer of a worker: notes go to the parent; phases of several points at once tell nothing."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def phase(self, name: str, seconds: float) -> None:
        del name, seconds

    def note(self, text: str) -> None:
        self._pipe.send(text)


@dataclass
class _Worker:
    process: SpawnProcess
    pipe: Connection
    order: Order | None = None
    needs_mb: float = 0.0
    began: float = 0.0


class Workers:
    """`count` processes at most, started when there is work for them and ended on leaving. What runs at once
    takes no more than `memory_mb` together, by the engine's estimate; a point that is larger runs alone."""

    def __init__(self, count: int, engine: Engine, where: Store, memory_mb: float = math.inf) -> None:
        self._count, self._engine, self._store = count, engine, where
        self._memory_mb = memory_mb
        self._workers: list[_Worker] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + GRACE_S
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.pipe.close()
        self._store.clean_up()

    def run(self, orders: Iterable[Order]) -> Iterator[Told]:
        """Carry out all orders, begun in turn. Raises what ends a sweep: StoreError, HostUnfitError."""
        waiting = deque(orders)
        while True:
            while waiting and self._fits(needs_mb := self._engine.memory_mb(waiting[0].spec)):
                yield self._give(waiting.popleft(), needs_mb)
            busy = {worker.pipe: worker for worker in self._busy}
            if not busy:
                return
            for pipe in wait(list(busy)):
                yield self._hear(busy[pipe])  # type: ignore[index]

    @property
    def _busy(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.order is not None]

    def _fits(self, needs_mb: float) -> bool:
        held_mb = sum(worker.needs_mb for worker in self._busy)
        return len(self._busy) < self._count and (not self._busy or held_mb + needs_mb <= self._memory_mb)

    def _give(self, order: Order, needs_mb: float) -> Started:
        worker = next((w for w in self._workers if w.order is None), None) or self._start()
        worker.order, worker.needs_mb, worker.began = order, needs_mb, time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # it died: told when it is listened to
            worker.pipe.send(order)
        return Started(order)

    def _hear(self, worker: _Worker) -> Noted | Finished:
        order = worker.order
        if order is None:
            raise AssertionError("an idle worker has nothing to tell")
        try:
            message = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            return self._buried(worker, order)
        if isinstance(message, _Ended):
            raise (StoreError if message.of_store else HostUnfitError)(message.text)
        if isinstance(message, str):
            return Noted(order, message)
        worker.order = None
        return Finished(order, message)

    def _buried(self, worker: _Worker, order: Order) -> Finished:
        """The point of a worker that died. What it left unfinished is removed."""
        worker.process.join()
        self._workers.remove(worker)
        worker.pipe.close()
        files.remove_abandoned(self._store.directory)
        reason = (
            f"its process died ({_how(worker.process.exitcode)}): run the same command again to repeat it"
        )
        return Finished(order, fail(order, reason, self._store, time.monotonic() - worker.began))

    def _start(self) -> _Worker:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(
            target=_serve, args=(theirs, self._engine, self._store, os.getpid()), daemon=True
        )
        # Until it ignores it itself, a worker must not hear Ctrl-C.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
            worker = _Worker(process, ours)
            self._workers.append(worker)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return worker


def _how(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"{signal.Signals(-exit_code).name}, perhaps for want of memory"
    return f"exit code {exit_code}"


def _serve(pipe: Connection, engine: Engine, where: Store, parent: int) -> None:
    """A worker's life: orders until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    voice = _Voice(pipe)
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(carry_out(order, engine, where, voice))
        except RefabricError as error:
            pipe.send(_Ended(str(error), isinstance(error, StoreError)))
