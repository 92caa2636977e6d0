"""Messages of the program that runs the hosts: phases, notes and instants, and finally the result."""

from __future__ import annotations

from typing import Any

from common.errors import RunError
from engines.engine import Observer, follower
from engines.kernel_hosts import wire
from model.instant import Instant
from model.result import RunResult


class Outcome:
    """Gives phases, notes and instants to the observer, and keeps the result."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._follow = follower(observer)
        self._received = wire.Received()

    def take(self, message: dict[str, Any]) -> None:
        """Take one message of engines/emulation/point.py."""
        if "phase" in message:
            self._observer.phase(message["phase"], message["seconds"])
        elif "note" in message:
            self._observer.note(message["note"])
        elif "instant" in message:
            if self._follow:
                self._follow(Instant.from_json(message["instant"]))
        else:
            self._received.take(message)

    def result(self, program: str) -> RunResult:
        """Return the result. Raises RunError if `program` ended without one."""
        if self._received.result is None:
            raise RunError(f"running the {program}: it ended without a result; run the point again")
        return self._received.result
