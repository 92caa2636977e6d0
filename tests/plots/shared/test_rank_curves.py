"""Flows of several seeds sorted together: every flow is in the curve, and the band contains it."""

from __future__ import annotations

import numpy as np
import pytest

from plots.shared import ranks

SAMPLES = {
    "equal sizes": [[5.0, 60.0, 90.0], [20.0, 50.0, 80.0], [1.0, 2.0, 100.0]],
    "unequal sizes": [[5.0], [10.0, 20.0], [7.0, 8.0, 9.0, 70.0, 71.0], [1.0, 99.0]],
    "one seed": [[3.0, 1.0, 2.0]],
    "equal values": [[4.0, 4.0], [4.0, 4.0]],
    "many": [np.random.default_rng(seed).exponential(50, 100 + seed).tolist() for seed in range(7)],
}


@pytest.mark.parametrize("case", SAMPLES)
def test_a_curve_has_every_value_and_lies_in_its_band(case: str) -> None:
    samples = SAMPLES[case]
    found = ranks.pooled(samples)
    assert found is not None
    assert found.values.tolist() == sorted(value for sample in samples for value in sample)
    assert found.seeds == len(samples)
    assert (found.low <= found.values).all() and (found.values <= found.high).all()
    assert (np.diff(found.low) >= 0).all() and (np.diff(found.high) >= 0).all()
    assert (found.x_pct > 0).all() and (found.x_pct < 100).all() and (np.diff(found.x_pct) > 0).all()


def test_the_band_has_the_extremes_of_every_rank_of_seeds_with_as_many_flows() -> None:
    samples = SAMPLES["equal sizes"]
    found = ranks.pooled(samples)
    assert found is not None
    ranked = np.sort(np.array(samples), axis=1)
    assert found.low.tolist() == np.repeat(ranked.min(axis=0), 3).tolist()
    assert found.high.tolist() == np.repeat(ranked.max(axis=0), 3).tolist()
    assert found.x_pct == pytest.approx([100 * (i + 0.5) / 9 for i in range(9)])


def test_one_seed_is_its_own_band() -> None:
    found = ranks.pooled(SAMPLES["one seed"])
    assert found is not None
    assert found.low.tolist() == found.values.tolist() == found.high.tolist() == [1, 2, 3]
    assert ranks.note([found]) == []


def test_seeds_without_a_value_do_not_count() -> None:
    assert ranks.pooled([]) is None
    assert ranks.pooled([[], []]) is None
    found = ranks.each_pooled({1: [[], [2.0]], 8: [[]]})
    assert list(found) == [1] and found[1].seeds == 1
