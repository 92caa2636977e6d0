"""Processes: the environment of programs that we start, parallel tasks, and Ctrl-C that is never lost.

Tasks run in forked processes, which inherit them, so nothing is pickled on the way in. They die with this
process (prctl(2), PR_SET_PDEATHSIG), and an interrupt ends them.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from common.errors import RefabricError, RunError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkContext

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where root's programs are found."""
_OF_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE")


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a program that we start, with `changes`.

    Root's programs get a fixed PATH, and no variable adds folders to Python's import path.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OF_PYTHON}
    if os.geteuid() == 0:
        kept["PATH"] = SYSTEM_PATH
    return {**kept, **(changes or {})}


def python() -> tuple[str, ...]:
    """Return the beginning of a command: this Python, running the program text that follows.

    `-I` keeps it from importing from the current folder or the user's own, and from variables.
    """
    return sys.executable, "-I", "-c"


def ending_with_us() -> tuple[str, ...]:
    """Return the beginning of a command that the kernel kills when the thread that starts it ends.

    A program that sets this itself (prctl(2), PR_SET_PDEATHSIG) may be suspended before it does so, and would
    then never end. setpriv(1) sets it before the program starts. Empty on a system without setpriv(1).
    """
    setpriv = shutil.which("setpriv", path=SYSTEM_PATH)
    return () if setpriv is None else (setpriv, "--pdeathsig", "KILL")


def import_path() -> list[str]:
    """Return where this process imports from, without the current folder, which any user may have written."""
    return [entry for entry in sys.path if entry]


AGAIN_S = 0.02
INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals whose handlers may raise KeyboardInterrupt, the usual one first."""


@contextlib.contextmanager
def never_lost() -> Iterator[None]:
    """Raise a KeyboardInterrupt again that Python dropped because it came in a `__del__` or a callback.

    Python reports such an exception to sys.unraisablehook and goes on, so that a sweep would run to its end.
    """
    before = sys.unraisablehook

    def hook(caught: sys.UnraisableHookArgs) -> None:
        if isinstance(caught.exc_value, KeyboardInterrupt):
            threading.Timer(AGAIN_S, _interrupt).start()
        else:
            before(caught)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _interrupt() -> None:
    """Send the main thread a signal that Python handles. `nohup ... &` ignores SIGINT; then it is another."""
    main = threading.main_thread().ident
    handled = next((number for number in INTERRUPTING if callable(signal.getsignal(number))), None)
    if main is not None and handled is not None:
        signal.pthread_kill(main, handled)


T = TypeVar("T")
_PR_SET_PDEATHSIG = 1
END_S = 2.0


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
    # Imported here, because every command imports this module, and few run tasks.
    import multiprocessing  # noqa: PLC0415

    sys.stdout.flush()
    fork = multiprocessing.get_context("fork")
    following = fork.Value("q", 0)
    with contextlib.ExitStack() as stack:
        pipes = [stack.enter_context(_process(fork, tasks, following)) for _ in range(at_once)]
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
def _process(fork: ForkContext, tasks: Sequence[Callable[[], Any]], following: Any) -> Iterator[Connection]:
    here, there = fork.Pipe(duplex=False)
    process = fork.Process(target=_serve, args=(tasks, following, here, there), daemon=True)
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
    from multiprocessing import connection  # noqa: PLC0415 -- as in side_by_side

    open_pipes = list(pipes)
    while open_pipes:
        for pipe in connection.wait(open_pipes):
            assert isinstance(pipe, connection.Connection)
            try:
                yield pipe.recv()
            except EOFError:
                open_pipes.remove(pipe)
