from __future__ import annotations

import itertools

import pytest

from engines.emulation.hosts.hosts import is_chosen


@pytest.mark.parametrize("share", [0.0, 0.15, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("hosts", [1, 16, 128])
def test_a_share_of_the_hosts_is_chosen_and_evenly_spread(hosts: int, share: float) -> None:
    chosen = [number for number in range(hosts) if is_chosen(number, share)]
    assert len(chosen) == int(hosts * share)
    gaps = {after - before for before, after in itertools.pairwise(chosen)}
    assert len(gaps) <= 2
