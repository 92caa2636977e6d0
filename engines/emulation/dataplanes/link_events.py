"""Links of a running emulation that fail, degrade or recover at given times, by the machine's clock."""

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
    """While the block runs, from whose beginning the events' times count. What is not due at its end does not
    happen. Raises what `set_share` raised, when the block has ended."""
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
