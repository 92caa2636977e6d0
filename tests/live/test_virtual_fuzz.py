"""Ten of the random settings of benchmarks/engine_fuzz.py: flows get the same shares from simulated hosts and
from Linux hosts in virtual time. Needs no root, but a kernel (`refabric kernel build`)."""

from __future__ import annotations

import pytest

from benchmarks.engine_fuzz import compared, settings
from engines.linux.kernel.store import current

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(current() is None, reason="no kernel for guests: run `refabric kernel build`"),
]
DRAWN = settings(100, 1)
KEPT = (4, 5, 13, 20, 21, 23, 30, 37, 44, 46)
"""Their seeds: FatTree, leaf-spine and star; short and long queues, loss, delay, marks, 1 to 8 subflows."""


@pytest.mark.parametrize("seed", KEPT)
def test_shares_are_those_of_linux_hosts(seed: int) -> None:
    found = compared(DRAWN[seed - 1])
    assert found.agrees, found
    assert found.rank is None or found.rank > 0.3
