"""Natural demands: hand-worked examples of Hedera's algorithm, and properties that hold for any flows."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from controllers.hedera.demands import natural_demands


def demands(
    pairs: Sequence[tuple[int, int]],
    hosts: int,
    sending: Sequence[float] | None = None,
    receiving: Sequence[float] | None = None,
) -> list[float]:
    sources, receivers = (np.array([pair[end] for pair in pairs], np.int64) for end in (0, 1))
    usual = [1.0] * hosts
    found: list[float] = natural_demands(
        sources, receivers, np.array(sending or usual), np.array(receiving or usual)
    ).tolist()
    return found


def test_four_hosts_as_hedera_works_them_out() -> None:
    """The structure of the paper's figure 4. Senders divide their links: h0 and h1 give a third to each of
    three flows, h2 and h3 a half to each of two. h0 is offered 7/6 by three flows and limits each to a third,
    so h2 can give a sixth more to h3. h1 is offered 4/3 by three flows and limits each to a third, including
    both of h3. h3 is then offered 1."""
    pairs = [(0, 1), (0, 2), (0, 3), (1, 0), (1, 0), (1, 2), (2, 0), (2, 3), (3, 1), (3, 1)]
    third = 1 / 3
    expected = [third, third, third, third, third, third, third, 2 / 3, third, third]
    assert demands(pairs, 4) == pytest.approx(expected, abs=1e-9)


def test_a_receiver_of_many_limits_them_and_their_senders_give_the_rest_to_others() -> None:
    """Four send to host 4; host 0 also sends to 5, and gets 3/4 there."""
    pairs = [(0, 4), (1, 4), (2, 4), (3, 4), (0, 5)]
    assert demands(pairs, 6) == pytest.approx([0.25] * 4 + [0.75])


def test_a_flow_that_its_sender_limits_leaves_its_share_to_others() -> None:
    """Host 0 sends a fifth to each of five hosts; host 1 has the other 4/5 of its only receiver, host 2."""
    pairs = [(0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (1, 2)]
    assert demands(pairs, 7) == pytest.approx([0.2] * 5 + [0.8])


def test_a_permutation_demands_whole_links() -> None:
    assert demands([(0, 1), (1, 2), (2, 0)], 3) == [1.0, 1.0, 1.0]


def test_links_of_different_rates() -> None:
    """Host 0 has rate 10, its receivers 1 and 10: the second gets what the first cannot take."""
    assert demands([(0, 1), (0, 2)], 3, [10, 1, 1], [1, 1, 10]) == pytest.approx([1, 9])


@pytest.mark.parametrize("seed", range(40))
def test_any_flows_fit_their_hosts_and_each_meets_a_full_end(seed: int) -> None:
    """No host sends or receives more than its link carries, and the demands are max-min fair, which has one
    solution: a flow can get more only if another flow that has no more than it gets less."""
    rng = random.Random(seed)
    hosts = rng.randrange(2, 12)
    flows = [tuple(rng.sample(range(hosts), 2)) for _ in range(rng.randrange(1, 60))]
    pairs = [(src, dst) for src, dst in flows]
    found = demands(pairs, hosts)
    for end in (0, 1):
        used = [sum(d for d, pair in zip(found, pairs, strict=True) if pair[end] == h) for h in range(hosts)]
        assert max(used) <= 1 + 1e-6
    for demand, pair in zip(found, pairs, strict=True):
        assert demand > 0
        assert any(
            sum(d for d, other in zip(found, pairs, strict=True) if other[end] == pair[end]) >= 1 - 1e-6
            and demand
            >= max(d for d, other in zip(found, pairs, strict=True) if other[end] == pair[end]) - 1e-6
            for end in (0, 1)
        )


def test_no_flows_have_no_demands() -> None:
    assert demands([], 3) == []
