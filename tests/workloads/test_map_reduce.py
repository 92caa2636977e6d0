"""The shuffle of map-reduce jobs."""

from __future__ import annotations

from collections import Counter

import pytest

from common.errors import UsageError
from workloads.map_reduce import map_reduce

HOSTS = [f"h{i}" for i in range(35)]


def test_every_mapper_sends_to_every_reducer_of_its_job() -> None:
    flows = map_reduce(HOSTS, 1, maps=3, reduces=4, kb=5)
    assert len(flows) == 5 * 12 and {flow.size_bytes for flow in flows} == {5000}
    for first in range(0, 60, 12):
        job = flows[first : first + 12]
        assert set(Counter(flow.src for flow in job).values()) == {4}
        assert set(Counter(flow.dst for flow in job).values()) == {3}
    assert len({host for flow in flows for host in (flow.src, flow.dst)}) == 35
    assert not {flow.src for flow in flows} & {flow.dst for flow in flows}


def test_the_seed_decides_which_hosts_are_drawn() -> None:
    one, same, other = (map_reduce(HOSTS, seed, jobs=1, maps=2, reduces=2) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize("wrong", [{"jobs": 3}, {"maps": 0}, {"reduces": 40}, {"kb": 0}, {"jobs": -1}])
def test_impossible_jobs_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="map_reduce"):
        map_reduce(HOSTS, 1, **wrong)
