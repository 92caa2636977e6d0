"""Points of a sweep in processes of their own, as many at a time as there are workers.

A worker gets an order, runs and stores the point, and answers; one that dies costs its own point, which fails
and says how. Workers die with the process that started them (prctl(2), PR_SET_PDEATHSIG), whatever ends that;
it alone hears Ctrl-C. They are programs started afresh: nothing of the parent's threads is in them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Self

from common import files, programs
from common.errors import HostUnfitError, RefabricError, StoreError
from common.side_by_side import follow_parent
from engines.dispatch import runs, waves
from engines.engine import Engine, Observer
from engines.provenance import free_memory_mb
from harness.execute.executor import (
    Crew,
    Finished,
    InTurn,
    Noted,
    Started,
    Told,
)
from harness.execute.point import Order, carry_out, fail
from harness.results.store import Store

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from harness.execute.workers import serve; serve(int(sys.argv[1]))"
)
GRACE_S = 2.0
"""A worker told to end has nothing to tidy up: what it was writing is removed for it."""
ASK_EVERY_S = 0.2
"""How often it is asked whether the points are still wanted, where somebody else may say no."""


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
    process: subprocess.Popen[bytes]
    pipe: Connection
    order: Order | None = None
    needs_mb: float = 0.0
    began: float = 0.0


class Processes:
    """`at_once` processes at most, started when there is work for them and ended on leaving.

    What runs at once takes no more than `memory_mb` together, by the engine's estimate; a point that is
    larger runs alone.
    """

    def __init__(self, at_once: int, engine: Engine, where: Store, memory_mb: float = math.inf) -> None:
        self._at_once, self._memory_mb = at_once, memory_mb
        self._engine, self._store = engine, where
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.process.terminate()
        deadline = time.monotonic() + GRACE_S
        for worker in self._workers:
            _bury(worker, max(0.0, deadline - time.monotonic()))
        self._store.clean_up()

    def run(self, orders: Iterable[Order], wanted: Callable[[], bool] | None = None) -> Iterator[Told]:
        """As `Crew.run`. It ends early once the points are not `wanted` any more."""
        waiting = deque(orders)
        pause_s = None if wanted is None else ASK_EVERY_S
        while wanted is None or wanted():
            while waiting and self._fits(needs_mb := self._engine.memory_mb(waiting[0].spec)):
                yield self._give(waiting.popleft(), needs_mb)
            busy = {worker.pipe: worker for worker in self._busy}
            if not busy:
                return
            for pipe in wait(list(busy), pause_s):
                yield self._hear(busy[pipe])  # type: ignore[index]

    @property
    def _busy(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.order is not None]

    def _fits(self, needs_mb: float) -> bool:
        held_mb = sum(worker.needs_mb for worker in self._busy)
        return len(self._busy) < self._at_once and (not self._busy or held_mb + needs_mb <= self._memory_mb)

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
            return self._lost(worker, order)
        if isinstance(message, _Ended):
            raise (StoreError if message.of_store else HostUnfitError)(message.text)
        if isinstance(message, str):
            return Noted(order, message)
        worker.order = None
        return Finished(order, message)

    def _lost(self, worker: _Worker, order: Order) -> Finished:
        """The point of a worker that died. What it left unfinished is removed."""
        self._workers.remove(worker)
        _bury(worker, GRACE_S)
        files.remove_abandoned(self._store.directory)
        how = _how(worker.process.returncode)
        reason = f"its process died ({how}): run the same command again to repeat it"
        return Finished(order, fail(order, reason, self._store, time.monotonic() - worker.began))

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        handle = theirs.fileno()
        argv = [*programs.python(), _PROGRAM, str(handle), json.dumps(programs.import_path())]
        # Until it ignores it itself, a worker must not hear Ctrl-C.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            worker = _Worker(
                subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, pass_fds=[handle], env=programs.environment()
                ),
                ours,
            )
            self._workers.append(worker)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        with contextlib.suppress(BrokenPipeError):
            ours.send((self._engine, self._store, os.getpid()))
        return worker


def _bury(worker: _Worker, grace_s: float) -> None:
    try:
        worker.process.wait(grace_s)
    except subprocess.TimeoutExpired:
        worker.process.kill()
        worker.process.wait()
    worker.pipe.close()


def _how(exit_code: int) -> str:
    if exit_code < 0:
        return f"{signal.Signals(-exit_code).name}, perhaps for want of memory"
    return f"exit code {exit_code}"


def serve(handle: int) -> None:
    """A worker's life on its end of the pipe: orders until there are no more."""
    follow_parent()
    os.set_inheritable(handle, False)
    pipe = Connection(handle)
    with contextlib.suppress(EOFError):
        engine, where, parent = pipe.recv()
        voice = _Voice(pipe)
        while os.getppid() == parent:
            order = pipe.recv()
            try:
                pipe.send(carry_out(order, engine, where, voice))
            except RefabricError as error:
                pipe.send(_Ended(str(error), isinstance(error, StoreError)))


class CrewHere:
    """The Crew of this machine. What may share it comes first; what wants it to itself then has it, in this
    process."""

    def __init__(self, engine: Engine, where: Store, observer: Observer) -> None:
        self._engine, self._store, self._observer = engine, where, observer
        self._at_work = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._at_work.close()

    def run(self, orders: Iterable[Order]) -> Iterator[Told]:
        """As `Crew.run`."""
        orders = list(orders)
        for engine in waves(self._engine):
            wave = [order for order in orders if runs(engine, order.spec.engine)]
            yield from self._at_work.enter_context(self._crew(engine, wave)).run(wave)
            self._at_work.close()

    def _crew(self, engine: Engine, orders: Sequence[Order]) -> Crew:
        count = min(engine.parallel, len(orders))
        if count <= 1:
            return InTurn(engine, self._store, self._observer)
        free_mb = free_memory_mb()
        if text := too_large_together([engine.memory_mb(order.spec) for order in orders], count, free_mb):
            self._observer.note(text)
        return Processes(count, engine, self._store, free_mb)


def too_large_together(needs_mb: Sequence[float], at_once: int, free_mb: float) -> str:
    """What to say where the largest `at_once` points do not fit into memory together; empty where they do."""
    largest = sorted(needs_mb, reverse=True)[:at_once]
    if sum(largest) <= free_mb:
        return ""
    fit = sum(total <= free_mb for total in itertools.accumulate(largest))
    return (
        f"points take up to {largest[0]:.0f} MB and {free_mb:.0f} MB are free: no more than "
        f"{max(1, fit)} of the largest run at once, instead of {at_once}"
    )
