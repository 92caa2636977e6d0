"""The interface between a sweep and what runs its points: tasks go in, events come out.

Executors: `SequentialExecutor` (here), `LocalExecutor` (workers.py) and `DaskExecutor` (cluster/executor.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from engines.engine import Engine, Observer
from harness.execute.point import Done, Task, run_task
from harness.results.store import Store


@dataclass(frozen=True)
class Started:
    """A point has started; `worker` names the machine, and is empty for this one."""

    task: Task
    worker: str = ""


@dataclass(frozen=True)
class Noted:
    """A line for the user, from the engine or the executor."""

    task: Task
    text: str


@dataclass(frozen=True)
class Finished:
    """A point has ended and is stored."""

    task: Task
    done: Done


Event = Started | Noted | Finished


class Executor(Protocol):
    """Runs points. Leaving the context ends what still runs and removes what is unfinished."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, tasks: Iterable[Task]) -> Iterator[Event]:
        """Run all tasks. Each has one Started event and then one Finished event.

        Raises the errors that end a sweep: StoreError, HostUnfitError, RunError.
        """


class SequentialExecutor:
    """Runs one point after the other in this process; the observer gets the phases of each."""

    def __init__(self, engine: Engine, where: Store, observer: Observer) -> None:
        self._engine, self._store, self._observer = engine, where, observer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: no point outlives `run`."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Event]:
        """Run the tasks as `Executor.run` does."""
        for task in tasks:
            yield Started(task)
            yield Finished(task, run_task(task, self._engine, self._store, self._observer))
