"""The server of `refabric watch` in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.watch.points import WatchFolder
from harness.watch.server import WatchServer, until_interrupted


@contextmanager
def served(results: Path) -> Iterator[WatchServer]:
    """Serve the points of a results folder during the `with` block."""
    made = WatchServer(WatchFolder(results), "Watching")
    thread = threading.Thread(target=until_interrupted, args=(made,))
    thread.start()
    yield made
    made.shutdown()
    thread.join(10)
