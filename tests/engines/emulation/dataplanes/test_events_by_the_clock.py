"""Link events of an emulation happen in order and on time, and report errors."""

from __future__ import annotations

import threading
import time

import pytest

from common.errors import RunError
from engines.emulation.dataplanes.control import LinkEvents
from model.spec import LinkEvent


class Written:
    def __init__(self) -> None:
        self.events: list[LinkEvent] = []
        self.failed = threading.Event()

    def set_share(self, event: LinkEvent) -> None:
        if event.a == "gone":
            self.failed.set()
            raise RunError("the fabric core stopped")
        self.events.append(event)


def test_what_is_due_happens_in_order_and_the_rest_does_not() -> None:
    links = Written()
    later, now, never = (
        LinkEvent(0.05, "a", "b"),
        LinkEvent(0.0, "a", "b", 0.5),
        LinkEvent(60.0, "a", "b", 1.0),
    )
    with LinkEvents((never, later, now), links.set_share):
        deadline = time.monotonic() + 10
        while len(links.events) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
    assert links.events == [now, later]


def test_an_event_that_fails_ends_the_block_with_its_error() -> None:
    links = Written()
    events = LinkEvents((LinkEvent(0.0, "gone", "b"),), links.set_share)
    with pytest.raises(RunError, match="core stopped"), events:
        assert links.failed.wait(10)
