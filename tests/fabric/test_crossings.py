"""Sums and minima over the ports that subflows cross, against Python's own."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric._core import Crossings

PORTS = 12
PATHS = st.lists(st.lists(st.integers(0, PORTS - 1), min_size=1, max_size=8), max_size=20)


@given(PATHS, st.randoms(use_true_random=False))
def test_every_port_of_every_path_counts_once(paths: list[list[int]], random: Random) -> None:
    of_port = np.array([random.uniform(-9, 9) for _ in range(PORTS)])
    of_subflow = np.array([random.uniform(-9, 9) for _ in paths])
    crossings = Crossings(paths)
    through = [
        [of_subflow[i] for i, path in enumerate(paths) for p in path if p == port] for port in range(PORTS)
    ]
    assert len(crossings) == len(paths)
    assert [crossings.path(i) for i in range(len(paths))] == paths
    assert crossings.sums(of_port) == pytest.approx([of_port[path].sum() for path in paths])
    assert crossings.least(of_port).tolist() == [of_port[path].min() for path in paths]
    assert crossings.load(of_subflow, PORTS) == pytest.approx([sum(values) for values in through])
    assert crossings.least_at_ports(of_subflow, PORTS).tolist() == [min(v, default=math.inf) for v in through]


@given(PATHS, st.randoms(use_true_random=False))
def test_chosen_subflows_keep_their_paths_and_order(paths: list[list[int]], random: Random) -> None:
    chosen = [random.random() < 0.5 for _ in paths]
    kept = Crossings(paths).only(np.array(chosen, bool))
    expected = [path for path, wanted in zip(paths, chosen, strict=True) if wanted]
    assert [kept.path(i) for i in range(len(kept))] == expected


def test_values_that_do_not_fit_are_refused() -> None:
    crossings = Crossings([[0, 3], [1]])
    for wrong in (
        lambda: crossings.sums(np.zeros(3)),
        lambda: crossings.load(np.zeros(3), 4),
        lambda: crossings.load(np.zeros(2), 3),
        lambda: crossings.only(np.zeros(1, bool)),
        lambda: crossings.path(2),
    ):
        with pytest.raises(ValueError, match="not one value"):
            wrong()
    with pytest.raises(ValueError, match="crosses no port"):
        Crossings([[0], []])
