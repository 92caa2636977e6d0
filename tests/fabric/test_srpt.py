"""The ideal scheduler, against schedules by hand and its own laws."""

from __future__ import annotations

import random

import pytest

from fabric._core import srpt_ends

NEVER = 2**63 - 1
Flow = tuple[int, int, int, int]


def ends(flows: list[Flow], hosts: int = 8, limit: int = NEVER - 1) -> list[int]:
    return [int(end) for end in srpt_ends(flows, hosts, limit)]


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ([(0, 100, 0, 2), (30, 20, 1, 2)], [120, 50]),  # a smaller flow interrupts a larger one
        ([(0, 100, 0, 2), (90, 20, 1, 2)], [100, 120]),  # what remains counts, and not the size
        ([(0, 100, 0, 1), (0, 100, 2, 3), (0, 100, 1, 0)], [100, 100, 100]),  # other hosts do not wait
        # The second waits for host 0 to send, so the third may use receiver 2.
        ([(0, 10, 0, 1), (0, 20, 0, 2), (0, 30, 3, 2)], [10, 30, 50]),
    ],
)
def test_flows_end_as_by_hand(flows: list[Flow], expected: list[int]) -> None:
    assert ends(flows) == expected


def test_what_has_not_ended_by_the_limit_never_does() -> None:
    assert ends([(0, 100, 0, 1), (50, 100, 0, 1)], limit=150) == [100, NEVER]


@pytest.mark.parametrize("seed", range(3))
def test_no_host_does_more_than_its_link_allows(seed: int) -> None:
    rng = random.Random(seed)
    starts = sorted(rng.randrange(10_000) for _ in range(300))
    pairs = [rng.sample(range(8), 2) for _ in starts]
    flows = [(t, rng.randint(1, 200), src, dst) for t, (src, dst) in zip(starts, pairs, strict=True)]
    done = ends(flows)
    assert all(end >= start + work for end, (start, work, _, _) in zip(done, flows, strict=True))
    for side in (2, 3):
        for host in range(8):
            mine = sorted((end, flow) for end, flow in zip(done, flows, strict=True) if flow[side] == host)
            for end, _ in mine:
                before = [flow for other, flow in mine if other <= end]
                assert sum(flow[1] for flow in before) <= end - min(flow[0] for flow in before)


@pytest.mark.parametrize("flows", [[(5, 1, 0, 1), (4, 1, 0, 1)], [(0, 0, 0, 1)], [(0, 1, 0, 8)]])
def test_flows_that_cannot_be_are_refused(flows: list[Flow]) -> None:
    with pytest.raises(ValueError, match=r"order|nothing|host"):
        ends(flows)
