"""A thread that works beside a measurement, and whose errors `stop` raises."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod


class Background(ABC):
    """Runs `_work` in a thread from `start` to `stop`; `_work` returns soon after `_over` is set."""

    def __init__(self, name: str) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._error: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop. Raises the error that ended the work early: a RefabricError, or a bug."""
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    @abstractmethod
    def _work(self) -> None:
        """Work until `_over` is set."""

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:  # a bug here must fail the point that waits for this thread
            self._error = error
