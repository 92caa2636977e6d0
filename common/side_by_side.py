"""Work without results in common, shared out among forked processes: what to do need not be told them.

Unlike the workers of a sweep (workers.py) they inherit all there is at the time and do no more than one list
of tasks. They die with this process (prctl(2), PR_SET_PDEATHSIG) and are ended when it is interrupted.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

from common.errors import RefabricError, RunError

T = TypeVar("T")
_PR_SET_PDEATHSIG = 1
END_S = 2.0
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class _Done(Generic[T]):
    """What came of task `number`: its result, or the error that says why there is none; `said` is what it
    wrote to stderr."""

    number: int
    said: str
    result: T | None = None
    error: RefabricError | None = None


def side_by_side(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """The results of all tasks, in their order; as many run at once as there are CPUs. What several say on
    stderr is said once. Raises the first RefabricError of a task, RunError where a process dies."""
    at_once = min(len(tasks), len(os.sched_getaffinity(0)))
    if at_once < 2:
        return [task() for task in tasks]
    sys.stdout.flush()
    following = _FORK.Value("q", 0)
    with contextlib.ExitStack() as stack:
        pipes = [stack.enter_context(_process(tasks, following)) for _ in range(at_once)]
        done = {each.number: each for each in _results(pipes)}
    for line in dict.fromkeys(line for number in sorted(done) for line in done[number].said.splitlines()):
        print(line, file=sys.stderr)
    for number in sorted(done):
        if (error := done[number].error) is not None:
            raise error
    if len(done) < len(tasks):
        raise RunError(f"{len(tasks) - len(done)} of {len(tasks)} tasks were lost: a process died")
    return [done[number].result for number in range(len(tasks))]  # type: ignore[misc]


def follow_parent() -> None:
    """For a process that works for the one that started it: Ctrl-C is the parent's alone to hear, and its
    end, whatever that is, is this one's too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def _process(tasks: Sequence[Callable[[], Any]], following: Any) -> Iterator[Connection]:
    here, there = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_serve, args=(tasks, following, here, there), daemon=True)
    process.start()
    there.close()
    try:
        yield here
    finally:
        here.close()
        process.terminate()
        process.join(END_S)
        if process.is_alive():
            process.kill()
            process.join()


def _serve(tasks: Sequence[Callable[[], Any]], following: Any, here: Connection, pipe: Connection) -> None:
    here.close()
    follow_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while (number := _next(following)) < len(tasks):
        pipe.send(_carried_out(number, tasks[number]))


def _next(following: Any) -> int:
    with following.get_lock():
        number: int = following.value
        following.value = number + 1
    return number


def _carried_out(number: int, task: Callable[[], Any]) -> _Done[Any]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            result = task()
    except RefabricError as error:
        return _Done(number, said.getvalue(), error=error)
    return _Done(number, said.getvalue(), result)


def _results(pipes: Sequence[Connection]) -> Iterator[_Done[Any]]:
    """Until every process has ended, in whatever order."""
    open_pipes = list(pipes)
    while open_pipes:
        for pipe in connection.wait(open_pipes):
            assert isinstance(pipe, Connection)
            try:
                yield pipe.recv()
            except EOFError:
                open_pipes.remove(pipe)
