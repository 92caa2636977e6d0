"""Several flows per host, and one flow from a share of the hosts."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topos
from common.errors import UsageError
from workloads import long_flows, matrices
from workloads.flow import Flow, Traffic
from workloads.pairs import connections_per_host, permutation_share

HOSTS = [f"h{i}" for i in range(16)]
TRAFFIC = Traffic(seconds=1.0, host_mbps=10.0)
hosts = st.integers(2, 40).map(lambda n: [f"h{i}" for i in range(n)])
seeds = st.integers(0, 2**32 - 1)


def texts() -> st.SearchStrategy[str]:
    """Command lines of every registered workload, with integers in and out of range for its parameters."""
    return st.sampled_from(sorted(matrices.MATRICES)).flatmap(_of)


def _of(name: str) -> st.SearchStrategy[str]:
    kinds = {
        key: st.integers(-3, 130).map(str) if isinstance(default, int) else st.sampled_from([default, "none"])
        for key, default in matrices.MATRICES[name].defaults.items()
    }
    chosen = st.fixed_dictionaries({}, optional=kinds)
    return chosen.map(lambda given: ":".join([name, *(f"{key}={value}" for key, value in given.items())]))


@given(hosts=hosts, seed=seeds, flows=st.integers(1, 8), percent=st.integers(1, 100))
def test_every_chosen_host_sends_as_many_flows_to_distinct_others(
    hosts: list[str], seed: int, flows: int, percent: int
) -> None:
    flows = min(flows, len(hosts) - 1)
    drawn = connections_per_host(hosts, seed, flows=flows, percent=percent)
    by_sender = Counter(flow.src for flow in drawn)
    assert set(by_sender.values()) == {flows}
    assert len(by_sender) == max(1, round(len(hosts) * percent / 100))
    assert len({(flow.src, flow.dst) for flow in drawn}) == len(drawn)
    assert all(flow.src != flow.dst for flow in drawn)


@given(hosts=hosts, seed=seeds, small=st.integers(1, 100), large=st.integers(1, 100))
def test_a_share_of_a_permutation_has_distinct_ends_and_grows(
    hosts: list[str], seed: int, small: int, large: int
) -> None:
    small, large = sorted((small, large))
    some, more = (set(permutation_share(hosts, seed, percent=percent)) for percent in (small, large))
    assert some <= more
    assert len({flow.src for flow in more}) == len({flow.dst for flow in more}) == len(more)
    assert more <= set(long_flows.one_to_one(hosts, seed))


def test_any_destinations_repeat_and_may_be_more_than_there_are_hosts() -> None:
    drawn = connections_per_host(HOSTS, 1, flows=40, to="any")
    assert len(drawn) == 640
    assert len(set(drawn)) < 640


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("connections_per_host:16", "16 flows per host on 16 hosts are impossible: choose from 1 to 15"),
        ("connections_per_host:0", "0 flows per host"),
        ("connections_per_host:2:percent=0", "percent must be from 1 to 100 percent, not 0"),
        ("connections_per_host:2:to=few", "to must be distinct or any, not 'few'"),
        ("permutation_share:101", "percent must be from 1 to 100 percent, not 101"),
    ],
)
def test_what_no_such_matrix_has_is_refused(text: str, words: str) -> None:
    name, params = matrices.parse(text)
    with pytest.raises(UsageError, match=words):
        matrices.MATRICES[name].draw(HOSTS, 1, **params)


@given(text=texts(), seed=seeds)
def test_every_workload_of_a_command_line_draws_flows_or_says_in_one_line_why_not(
    text: str, seed: int
) -> None:
    topology = topos.build("fat_tree", {"k": 4})
    names = {topology.nodes[host].name for host in topology.hosts}
    try:
        name, params = matrices.parse(text)
        flows: tuple[Flow, ...] = matrices.build(name, topology, params, seed, TRAFFIC)
    except UsageError as error:
        assert "\n" not in str(error)
        return
    assert flows == matrices.build(name, topology, params, seed, TRAFFIC)
    assert matrices.parse(matrices.label(name, params)) == (name, params)
    assert all(flow.src in names and flow.dst in names and flow.src != flow.dst for flow in flows)
