"""The machines that run a sweep's points, each with its executor: this machine or a cluster (cluster/)."""

from __future__ import annotations

from typing import Protocol

from engines.engine import Observer
from harness.execute.executor import Executor
from harness.execute.workers import LocalExecutor
from harness.plan.capabilities import LocalCapabilities, MachineCapabilities
from harness.results.store import Store


class Machines(MachineCapabilities, Protocol):
    """The machines that run points: what planning asks of them, and the executor for them."""

    def executor(self, where: Store, observer: Observer) -> Executor:
        """Return an executor that stores its points in `where`."""


class ThisMachine(LocalCapabilities):
    """This machine alone."""

    def executor(self, where: Store, observer: Observer) -> Executor:
        """Return an executor with as many processes as the engine runs at once."""
        return LocalExecutor(self.engine, where, observer)
