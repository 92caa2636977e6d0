"""Runs the points of a sweep in worker processes of this machine.

The parent sends a task to a worker. The worker runs and stores the point and sends back the outcome. If
a worker dies, its point fails with the cause. Workers end with the process that started them (prctl(2),
PR_SET_PDEATHSIG), however that ends; only the parent handles Ctrl-C. Each worker is a new Python program, not
a fork, so that it has none of the parent's threads.
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
from common.errors import RefabricError
from common.side_by_side import follow_parent
from engines.dispatch import runs, waves
from engines.emulation.sandbox import client
from engines.engine import Engine, Observer
from engines.provenance import free_memory_mb
from engines.registry import real_time
from harness.execute.executor import (
    Event,
    Executor,
    Finished,
    Noted,
    SequentialExecutor,
    Started,
)
from harness.execute.point import Task, fail, run_task
from harness.results.store import Store
from model.reasons import ENDED, Reason
from model.spec import RunSpec

_PROGRAM = (
    "import gc, json, sys; gc.disable(); sys.path[:] = json.loads(sys.argv[2]); "
    "from harness.execute.workers import serve; gc.freeze(); gc.enable(); serve(int(sys.argv[1]))"
)
"""Imported objects stay. Searching them for garbage would take a fifth of the time of a start."""
GRACE_S = 2.0
"""Time from SIGTERM to SIGKILL. A worker has nothing to tidy up: the parent removes its unfinished files."""
POLL_S = 0.2
"""How often the parent checks whether the points are still wanted, where they may be cancelled."""


class _PipeObserver:
    """The Observer of a worker: sends notes to the parent and ignores phases, which overlap among workers."""

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
    task: Task | None = None
    needs_mb: float = 0.0
    cpus: int = 1
    started: float = 0.0


class MemoryNeeds:
    """The engine's estimates of the memory of points, made once for all seeds of a point."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, float] = {}

    def mb(self, spec: RunSpec) -> float:
        """Return the estimate for this point in MB."""
        point = spec.key(ignoring=("seed",))
        if point not in self._known:
            self._known[point] = self._engine.memory_mb(spec)
        return self._known[point]


class Processes:
    """At most `at_once` worker processes, started when there is work for them and ended on leaving.

    Points run side by side only while they take no more CPUs than the engine runs points at once, and while
    the engine estimates that they need at most `memory_mb` together. A point that needs more runs alone.
    """

    def __init__(
        self,
        at_once: int,
        engine: Engine,
        where: Store,
        memory_mb: float = math.inf,
        needs: MemoryNeeds | None = None,
    ) -> None:
        self._at_once, self._memory_mb = at_once, memory_mb
        self._engine, self._store = engine, where
        self._needs = MemoryNeeds(engine) if needs is None else needs
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
            _end(worker, max(0.0, deadline - time.monotonic()))
        self._store.clean_up()

    def run(self, tasks: Iterable[Task], wanted: Callable[[], bool] | None = None) -> Iterator[Event]:
        """Run the tasks as `Executor.run` does; stop early once `wanted` returns False."""
        waiting = deque(tasks)
        pause_s = None if wanted is None else POLL_S
        while wanted is None or wanted():
            while waiting and self._fits(waiting[0].spec):
                yield self._assign(waiting.popleft())
            busy = {worker.pipe: worker for worker in self._busy}
            if not busy:
                return
            for pipe in wait(list(busy), pause_s):
                yield self._receive(busy[pipe])  # type: ignore[index]

    @property
    def _busy(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.task is not None]

    def _fits(self, spec: RunSpec) -> bool:
        busy = self._busy
        if not busy:
            return True
        needs_mb = sum(worker.needs_mb for worker in busy) + self._needs.mb(spec)
        cpus = sum(worker.cpus for worker in busy) + self._engine.cpus(spec)
        return len(busy) < self._at_once and cpus <= self._engine.parallel and needs_mb <= self._memory_mb

    def _assign(self, task: Task) -> Started:
        worker = next((w for w in self._workers if w.task is None), None) or self._start()
        worker.task, worker.started = task, time.monotonic()
        worker.needs_mb, worker.cpus = self._needs.mb(task.spec), self._engine.cpus(task.spec)
        with contextlib.suppress(BrokenPipeError):  # it died: `_receive` finds out
            worker.pipe.send(task)
        return Started(task)

    def _receive(self, worker: _Worker) -> Noted | Finished:
        task = worker.task
        if task is None:
            raise AssertionError("received a message from a worker without a task")
        try:
            message = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            return self._lost(worker, task)
        if isinstance(message, RefabricError):  # it ends the sweep, with the exit code of its class
            raise message
        if isinstance(message, str):
            return Noted(task, message)
        worker.task = None
        return Finished(task, message)

    def _lost(self, worker: _Worker, task: Task) -> Finished:
        """Store the point of a dead worker as failed and remove the worker's unfinished files."""
        self._workers.remove(worker)
        _end(worker, GRACE_S)
        files.remove_abandoned(self._store.directory)
        cause = _cause(worker.process.returncode)
        reason = Reason(ENDED, f"its process died ({cause}): run the same command again to repeat it")
        return Finished(task, fail(task, reason, self._store, time.monotonic() - worker.started))

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        handle = theirs.fileno()
        program = [*programs.python(), _PROGRAM, str(handle), json.dumps(programs.import_path())]
        argv = [*programs.ending_with_us(), *program]
        # The worker inherits the block, so that Ctrl-C cannot end it before it ignores the signal itself.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with client.passed_on(needed=real_time(self._engine.name.split(","))) as (handles, variables):
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[handle, *handles],
                    env=programs.environment(variables),
                )
            worker = _Worker(process, ours)
            self._workers.append(worker)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        with contextlib.suppress(BrokenPipeError):
            ours.send((self._engine, self._store, os.getpid()))
        return worker


def _end(worker: _Worker, grace_s: float) -> None:
    """Wait for the process, kill it after `grace_s`, and close the pipe."""
    try:
        worker.process.wait(grace_s)
    except subprocess.TimeoutExpired:
        worker.process.kill()
        worker.process.wait()
    worker.pipe.close()


def _cause(exit_code: int) -> str:
    if exit_code < 0:
        return f"{signal.Signals(-exit_code).name}, perhaps out of memory"
    return f"exit code {exit_code}"


def serve(handle: int) -> None:
    """Run a worker on its end of the pipe: take tasks until the parent closes the pipe or ends."""
    follow_parent()
    os.set_inheritable(handle, False)
    pipe = Connection(handle)
    with contextlib.suppress(EOFError, ConnectionError):  # the latter where the parent was killed
        engine, where, parent = pipe.recv()
        observer = _PipeObserver(pipe)
        while os.getppid() == parent:
            task = pipe.recv()
            try:
                pipe.send(run_task(task, engine, where, observer))
            except RefabricError as error:
                pipe.send(error)


class LocalExecutor:
    """The Executor of this machine. It first runs the engines whose points may run side by side, in worker
    processes, and then those whose points need the machine to themselves, in this process."""

    def __init__(self, engine: Engine, where: Store, observer: Observer) -> None:
        self._engine, self._store, self._observer = engine, where, observer
        self._running = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def run(self, tasks: Iterable[Task]) -> Iterator[Event]:
        """Run the tasks as `Executor.run` does."""
        tasks = list(tasks)
        for engine in waves(self._engine):
            wave = [task for task in tasks if runs(engine, task.spec.engine)]
            yield from self._running.enter_context(self._executor(engine, wave)).run(wave)
            self._running.close()

    def _executor(self, engine: Engine, tasks: Sequence[Task]) -> Executor:
        count = min(engine.parallel, len(tasks))
        if count <= 1:
            return SequentialExecutor(engine, self._store, self._observer)
        free_mb, needs = free_memory_mb(), MemoryNeeds(engine)
        if text := too_large_together([needs.mb(task.spec) for task in tasks], count, free_mb):
            self._observer.note(text)
        return Processes(count, engine, self._store, free_mb, needs)


def too_large_together(needs_mb: Sequence[float], at_once: int, free_mb: float) -> str:
    """Return a warning if the largest `at_once` points do not fit into memory together, else nothing."""
    largest = sorted(needs_mb, reverse=True)[:at_once]
    if sum(largest) <= free_mb:
        return ""
    fit = sum(total <= free_mb for total in itertools.accumulate(largest))
    return (
        f"points need up to {largest[0]:.0f} MB each and {free_mb:.0f} MB are free: at most "
        f"{max(1, fit)} of the largest run at once, instead of {at_once}"
    )
