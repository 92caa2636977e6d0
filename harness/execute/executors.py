"""Runs the points of a sweep: tasks go in, events come out. Here in worker processes of this machine.

The parent sends a task to a worker. The worker runs and stores the point and sends back the outcome. If
a worker dies, its point fails with the cause. Workers end with the process that started them (prctl(2),
PR_SET_PDEATHSIG), however that ends; only the parent handles Ctrl-C. Each worker is a new Python program, not
a fork, so that it has none of the parent's threads.
"""

from __future__ import annotations

import contextlib
import dataclasses
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
from typing import Protocol, Self

from common import files, processes
from common.errors import RefabricError
from common.processes import follow_parent
from engines.emulation.sandbox import client
from engines.engine import Engine, Observer
from engines.provenance import free_memory_mb
from engines.registry import real_time, runs, waves
from harness.execute.point import Task, TaskEnd, fail, run_task
from harness.results.build import OneBuild
from harness.results.store import Store
from model.reasons import ENDED, Reason
from model.spec import RunSpec

_PROGRAM = (
    "import gc, json, sys; gc.disable(); sys.path[:] = json.loads(sys.argv[2]); "
    "from harness.execute.executors import serve; gc.freeze(); gc.enable(); serve(int(sys.argv[1]))"
)
"""Imported objects stay. Searching them for garbage would take a fifth of the time of a start."""
GRACE_S = 2.0
"""Time from SIGTERM to SIGKILL. A worker has nothing to tidy up: the parent removes its unfinished files."""
POLL_S = 0.2
"""How often the parent checks whether the points are still wanted, where they may be cancelled."""


@dataclass(frozen=True)
class TaskStart:
    """A point has started; `worker` names the machine, and is empty for this one."""

    task: Task
    worker: str = ""


@dataclass(frozen=True)
class TaskNote:
    """A line for the user, from the engine or the executor."""

    task: Task
    text: str


Event = TaskStart | TaskNote | TaskEnd


class Executor(Protocol):
    """Runs points. Leaving the context ends what still runs and removes what is unfinished."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, tasks: Iterable[Task]) -> Iterator[Event]:
        """Run all tasks. Each has one TaskStart and then one TaskEnd.

        Raises the errors that end a sweep: StoreError, HostUnfitError, RunError.
        """


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


def memory_needs(engine: Engine) -> Callable[[RunSpec], float]:
    """Return the engine's estimates of the memory of points in MB, made once for all seeds of a point."""
    known: dict[str, float] = {}

    def needs_mb(spec: RunSpec) -> float:
        point = spec.key(ignoring=("seed",))
        if point not in known:
            known[point] = engine.memory_mb(spec)
        return known[point]

    return needs_mb


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
        needs_mb: Callable[[RunSpec], float] | None = None,
    ) -> None:
        self._at_once, self._memory_mb = at_once, memory_mb
        self._engine, self._store = engine, where
        self._needs_mb = needs_mb or memory_needs(engine)
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
        needs_mb = sum(worker.needs_mb for worker in busy) + self._needs_mb(spec)
        cpus = sum(worker.cpus for worker in busy) + self._engine.cpus(spec)
        return len(busy) < self._at_once and cpus <= self._engine.parallel and needs_mb <= self._memory_mb

    def _assign(self, task: Task) -> TaskStart:
        worker = next((w for w in self._workers if w.task is None), None) or self._start()
        worker.task, worker.started = task, time.monotonic()
        worker.needs_mb, worker.cpus = self._needs_mb(task.spec), self._engine.cpus(task.spec)
        with contextlib.suppress(BrokenPipeError):  # it died: `_receive` finds out
            worker.pipe.send(task)
        return TaskStart(task)

    def _receive(self, worker: _Worker) -> TaskNote | TaskEnd:
        task = worker.task
        if task is None:
            raise AssertionError("received a message from a worker without a task")
        try:
            message: RefabricError | str | TaskEnd = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            return self._lost(worker, task)
        if isinstance(message, RefabricError):  # it ends the sweep, with the exit code of its class
            raise message
        if isinstance(message, str):
            return TaskNote(task, message)
        worker.task = None
        return dataclasses.replace(message, task=task)

    def _lost(self, worker: _Worker, task: Task) -> TaskEnd:
        """Store the point of a dead worker as failed and remove the worker's unfinished files."""
        self._workers.remove(worker)
        _end(worker, GRACE_S)
        files.remove_abandoned(self._store.directory)
        code = worker.process.returncode
        cause = f"{signal.Signals(-code).name}, perhaps out of memory" if code < 0 else f"exit code {code}"
        reason = Reason(ENDED, f"its process died ({cause}): run the same command again to repeat it")
        return fail(task, reason, self._store, time.monotonic() - worker.started)

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        handle = theirs.fileno()
        program = [*processes.python(), _PROGRAM, str(handle), json.dumps(processes.import_path())]
        argv = [*processes.ending_with_us(), *program]
        # The worker inherits the block, so that Ctrl-C cannot end it before it ignores the signal itself.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with client.passed_on(needed=real_time(self._engine.name.split(","))) as (handles, variables):
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[handle, *handles],
                    env=processes.environment(variables),
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
        self._build = OneBuild()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._running.close()

    def run(self, tasks: Iterable[Task]) -> Iterator[Event]:
        """Run the tasks as `Executor.run` does. Raises HostUnfitError if refabric's code has changed."""
        for event in self._events(list(tasks)):
            if isinstance(event, TaskStart):
                self._build.check()
            yield event

    def _events(self, tasks: Sequence[Task]) -> Iterator[Event]:
        for engine in waves(self._engine):
            wave = [task for task in tasks if runs(engine, task.spec.engine)]
            count = min(engine.parallel, len(wave))
            if count <= 1:
                for task in wave:
                    yield TaskStart(task)
                    yield run_task(task, engine, self._store, self._observer)
                continue
            free_mb, needs_mb = free_memory_mb(), memory_needs(engine)
            if text := too_large_together([needs_mb(task.spec) for task in wave], count, free_mb):
                self._observer.note(text)
            processes = Processes(count, engine, self._store, free_mb, needs_mb)
            yield from self._running.enter_context(processes).run(wave)
            self._running.close()


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
