"""pFabric between Linux hosts in virtual time: the same frames as between real ones, in a guest. Needs no
root, but a kernel (`refabric kernel build`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engines.linux import guest
from engines.linux.kernel.store import current
from tests.live.dataplanes import test_ranks
from tests.live.dataplanes.test_ranks import LOSSY, check_completions, check_frames, check_sender
from tests.live.test_virtual_linux import asked

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(current() is None, reason="no kernel for guests: run `refabric kernel build`"),
]
EXACT_S = 1e-4
"""In virtual time the kernel takes no time from the tap to its TCP, but the tap's reader reads the clock."""


def run(folder: Path, discipline: str, queue_pkts: int, flows: tuple[int, int, int, float]) -> dict[str, Any]:
    folder.mkdir()
    found: list[Any] = []
    request = {"discipline": discipline, "queue_pkts": queue_pkts, "flows": list(flows)}
    target = "tests.support.scenarios.ranks:completions"
    guest.run(asked(folder, "", request, target=target, memory_mb=1024), None, found.append)
    (report,) = found
    assert isinstance(report, dict)
    return report


def test_every_segment_in_a_guest_has_what_remains_of_its_flow_and_its_sender_is_mintcp(
    tmp_path: Path,
) -> None:
    report = run(tmp_path / "a", "pfabric", *LOSSY)
    check_frames(report, EXACT_S)
    check_sender(report)


def test_short_flows_overtake_a_long_one_in_a_guest(tmp_path: Path) -> None:
    flows = (test_ranks.LONG, test_ranks.SHORT, test_ranks.SHORTS, 0.12)
    ranked, fifo = (
        run(tmp_path / discipline, discipline, 24, flows)["completed_s"] for discipline in ("pfabric", "fifo")
    )
    check_completions(ranked, fifo)
