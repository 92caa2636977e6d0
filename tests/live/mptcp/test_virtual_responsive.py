"""Subflows on demand in guests of the engine `linux`, also for transfers whose sender has written all. Needs
no root, but a kernel (`refabric kernel build`)."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from engines.linux.kernel.store import current
from model.spec import LinkSpec, RunSpec, SchedulerSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.live.test_virtual_linux import run

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(current() is None, reason="no kernel for guests: run `refabric kernel build`"),
]
CROWDED = RunSpec(
    link=LinkSpec(10.0),
    topology=TopologySpec("fat_tree", {"k": 4}),
    transport=TransportSpec(3, "reno"),
    workload=WorkloadSpec("one_to_one"),
    engine="linux",
    traffic="native",
    warmup_s=6.0,
    seconds=3.0,
    scheduler=SchedulerSpec("responsive", 200.0, demand_gap=0.1),
)
"""Three subflows at most. A flow alone carries 95.6 % of its link, so those that share a link ask."""
TRANSFERS = dataclasses.replace(
    CROWDED,
    workload=WorkloadSpec("map_reduce", {"jobs": 0, "maps": 4, "reduces": 4, "kb": 1500}),
    warmup_s=0.5,
    seconds=14.0,
)
"""32 transfers of 1.5 MB; the four of a receiver take 5.1 s on an idle link. The last bytes are written long
before they arrive."""


def test_the_kernel_of_a_guest_has_the_subflows_that_the_controller_opened(tmp_path: Path) -> None:
    result = run(CROWDED, tmp_path)
    joined = [flow.subflows_joined for flow in result.flows]
    assert min(joined) >= 1 and max(joined) in {2, 3}
    opened = result.metrics["subflows_opened"]
    assert 0 < sum(joined) - len(joined) <= opened
    assert result.metrics["controller_messages"] > opened


def test_transfers_get_subflows_after_their_last_write(tmp_path: Path) -> None:
    """A sender that shut down its side could open none: Linux answers ENOTCONN."""
    result = run(TRANSFERS, tmp_path)
    assert all(math.isfinite(flow.completed_s) for flow in result.flows)
    assert result.metrics["subflows_opened"] > 0
    assert not result.provenance["path_manager_errors"]
