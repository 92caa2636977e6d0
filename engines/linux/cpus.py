"""A CPU of its own for each guest: a guest that moves between CPUs runs 3.5 times slower.

A claim is a name in Linux's abstract AF_UNIX namespace, which ends with its process.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

NAME = "refabric-guest-cpu"


@contextmanager
def claimed(name: str = NAME) -> Iterator[int | None]:
    """Yield a CPU of this process that no other guest has; None if all are taken."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
        for cpu in sorted(os.sched_getaffinity(0)):
            try:
                claim.bind(f"\0{name}-{cpu}")
            except OSError:
                continue
            yield cpu
            return
    yield None
