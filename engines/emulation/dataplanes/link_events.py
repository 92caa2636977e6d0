"""Link events of a running emulation: links fail, degrade or recover at given times of the real clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from common.errors import RunError
from model.spec import LinkEvent


class Links(Protocol):
    def set_share(self, event: LinkEvent) -> None: ...


@contextmanager
def carried_out(events: Sequence[LinkEvent], links: Links) -> Iterator[None]:
    """Carry out events while the block runs; their times count from its start.

    Events that are not due when the block ends do not happen. Raises at the end of the block what
    `set_share` raised.
    """
    if not events:
        yield
        return
    start, over = time.monotonic(), threading.Event()
    errors: list[RunError] = []

    def work() -> None:
        try:
            for event in sorted(events, key=lambda event: event.t_s):
                if over.wait(max(0.0, start + event.t_s - time.monotonic())):
                    return
                links.set_share(event)
        except RunError as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="link events", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if errors:
        raise errors[0]
