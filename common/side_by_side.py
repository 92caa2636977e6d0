"""Run independent tasks in parallel in forked processes.

Forked processes inherit the tasks, so nothing is pickled on the way in. Unlike the workers of a sweep
(harness/execute/executors.py) they run one list of tasks and exit. They die with this process (prctl(2),
PR_SET_PDEATHSIG), and an interrupt ends them.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import multiprocessing
import os
import signal
import sys
import traceback
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
    """Outcome of task `number`: its result or its error, and `said`, what it wrote to stderr."""

    number: int
    said: str
    result: T | None = None
    error: Exception | None = None


def side_by_side(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run the tasks in parallel, one per CPU, and return their results in order.

    Identical lines that several tasks write to stderr are printed once. Raises the first RefabricError of a
    task, or RuntimeError with the traceback of another error, and RunError if a process dies.
    """
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
    if lost := len(tasks) - len(done):
        raise RunError(
            f"running {len(tasks)} tasks in parallel: {lost} {'was' if lost == 1 else 'were'} lost because a "
            "process died; run the command again"
        )
    return [done[number].result for number in range(len(tasks))]  # type: ignore[misc]


def follow_parent() -> None:
    """Make this child process ignore Ctrl-C, which its parent handles, and die when its parent dies."""
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
        pipe.send(_carried_out(number, tasks))


def _next(following: Any) -> int:
    with following.get_lock():
        number: int = following.value
        following.value = number + 1
    return number


def _carried_out(number: int, tasks: Sequence[Callable[[], Any]]) -> _Done[Any]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            result = tasks[number]()
    except RefabricError as error:
        return _Done(number, said.getvalue(), error=error)
    except Exception:
        words = f"one of {len(tasks)} tasks in parallel failed:\n{traceback.format_exc()}"
        return _Done(number, said.getvalue(), error=RuntimeError(words))
    return _Done(number, said.getvalue(), result)


def _results(pipes: Sequence[Connection]) -> Iterator[_Done[Any]]:
    """Yield results in the order in which they arrive, until every process has ended."""
    open_pipes = list(pipes)
    while open_pipes:
        for pipe in connection.wait(open_pipes):
            assert isinstance(pipe, Connection)
            try:
                yield pipe.recv()
            except EOFError:
                open_pipes.remove(pipe)
