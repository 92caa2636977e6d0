"""Comparing two folders: the pairs, the uncertainty of differences, and the output for each reader."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.compare import show
from harness.compare.compare import (
    Comparison,
    How,
    Matching,
    Side,
    compare,
    conditions,
    disagreements,
    fields_of,
    match,
)
from harness.results import point_results
from harness.results.point_results import PointResult
from harness.results.store import Store
from model.result import Status
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.command import refabric
from tests.support.judged_points import judged, stored
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of


def side(points: Sequence[PointResult], name: str = "a") -> Side:
    return Side(Path(name), tuple(judged(points)), ())


def matching(a: Sequence[RunSpec], b: Sequence[RunSpec]) -> Matching:
    return match(*(conditions(side([stored(s, [1.0]) for s in specs]).measured) for specs in (a, b)))


def seeds(means: Sequence[float], subflows: int = 1, first: int = 1, **changes: Any) -> list[PointResult]:
    """Return one point per mean, with consecutive seeds and two flows around each mean."""
    specs = [dataclasses.replace(spec_of(subflows, seed=first + n), **changes) for n in range(len(means))]
    return [stored(s, [mean - 0.5, mean + 0.5]) for s, mean in zip(specs, means, strict=True)]


def one(a: Sequence[PointResult], b: Sequence[PointResult]) -> Any:
    (only,) = compare(side(a), side(b)).compared
    return only


def shown(comparison: Comparison) -> str:
    stream = io.StringIO()
    show.show(stream, comparison, disagreements(comparison))
    return stream.getvalue()


def test_equal_conditions_meet_and_the_rest_is_named() -> None:
    found = matching([spec_of(n) for n in (1, 2, 8)], [spec_of(n) for n in (1, 8, 4)])
    assert [pair.a.spec.transport.subflows for pair in found.pairs] == [1, 8]
    assert all(pair.differing == () for pair in found.pairs)
    assert [c.spec.transport.subflows for c in found.only_a] == [2]
    assert [c.spec.transport.subflows for c in found.only_b] == [4]


def test_seeds_are_repetitions_of_one_condition() -> None:
    found = matching([spec_of(seed=s) for s in (1, 2, 3)], [spec_of(seed=s) for s in (3, 4)])
    (pair,) = found.pairs
    assert (len(pair.a.points), len(pair.b.points)) == (3, 2)


@pytest.mark.parametrize(
    "changes",
    [{"traffic": "iperf3"}, {"link": LinkSpec(5.0, queue_pkts=50, nic_queue_pkts=50)}, {"seconds": 8.0}],
)
def test_what_differs_throughout_is_what_is_compared(changes: dict[str, Any]) -> None:
    found = matching(
        [spec_of(n) for n in (1, 8)], [dataclasses.replace(spec_of(n), **changes) for n in (1, 8)]
    )
    assert len(found.pairs) == 2
    for pair in found.pairs:
        assert pair.a.spec.transport.subflows == pair.b.spec.transport.subflows
        assert len(pair.differing) == 1
        assert pair.same_permutation


def test_rates_are_settled_network_by_network() -> None:
    a = [spec_of(1, k=4, rate_mbps=50), spec_of(1, k=8, rate_mbps=5)]
    b = [spec_of(1, k=4, rate_mbps=50), spec_of(1, k=8, rate_mbps=2)]
    found = matching(a, b)
    assert {pair.a.spec.topology.k: pair.differing for pair in found.pairs} == {4: (), 8: ("rate_mbps",)}


def test_two_possible_partners_are_none() -> None:
    queues = [dataclasses.replace(spec_of(), link=LinkSpec(5.0, queue_pkts=q)) for q in (50, 200)]
    found = matching([spec_of()], queues)
    assert not (found.pairs or found.only_a or found.only_b)
    ((ours, theirs),) = found.ambiguous
    assert (len(ours), len(theirs)) == (1, 2)


def test_other_networks_meet_only_when_nothing_is_shared() -> None:
    star = dataclasses.replace(spec_of(), topology=TopologySpec("star", {"n": 16}))
    (pair,) = matching([spec_of()], [star]).pairs
    assert not pair.same_permutation, "flow 0 of a star is another pair of hosts"
    found = matching([spec_of()], [spec_of(), star])
    assert len(found.pairs) == 1
    assert [c.spec.topology.kind for c in found.only_b] == ["star"]


def test_common_seeds_are_paired() -> None:
    a, b = [2.0, 3.0, 2.5], [2.1, 3.1, 2.65]
    difference = one(seeds(a), seeds(b, traffic="iperf3")).goodput
    assert difference.how is How.PAIRED
    assert difference.pairs == 3
    assert difference.value == pytest.approx(100 * 0.35 / 3 / 5)
    assert difference.interval is not None
    assert difference.interval.excludes_zero


def test_means_of_pairs_are_those_of_the_common_seeds() -> None:
    comparison = compare(side(seeds([4.0, 2.0, 3.0])), side(seeds([2.1, 3.1], first=2)))
    difference = comparison.compared[0].goodput
    assert difference.a.mean == pytest.approx(50.0)
    assert difference.value == pytest.approx(2.0)
    assert "1 seed(s) left out, which the other side lacks" in shown(comparison)


def test_other_seeds_are_two_samples() -> None:
    difference = one(seeds([2.0, 3.0, 2.5]), seeds([2.1, 3.1, 2.65], first=7)).goodput
    assert difference.how is How.WELCH
    assert difference.interval is not None
    assert not difference.interval.excludes_zero


def test_equal_seeds_of_another_matrix_are_no_pairs() -> None:
    other = seeds([2.1, 3.1], workload=WorkloadSpec("all_to_all"))
    assert one(seeds([2.0, 3.0]), other).goodput.how is How.WELCH


@pytest.mark.parametrize(("count", "words"), [(1, "one seed: no uncertainty"), (3, "(in A)")])
def test_one_seed_has_no_uncertainty(count: int, words: str) -> None:
    compared = one(seeds([2.0]), seeds([2.5] * count))
    assert compared.goodput.interval is None
    assert words in show.conclusion(compared)
    assert compared.goodput.value == pytest.approx(10.0), "the difference itself is shown"


def test_one_seed_is_compared_flow_by_flow() -> None:
    compared = one(seeds([2.0]), [stored(spec_of(), [2.0, 2.4])])
    assert compared.flows is not None
    assert (compared.flows.flows, compared.flows.faster) == (2, 1)
    assert compared.flows.quartiles == pytest.approx((1.0, 4.0, 7.0))
    assert one(seeds([2.0]), seeds([2.0], first=2)).flows is None, "another permutation has other flows"
    assert one(seeds([2.0]), [stored(spec_of(), [2.0])]).flows is None


def test_a_copy_is_recognised() -> None:
    here = [stored(spec_of(), [2.0, 3.0])]
    again = [stored(spec_of(), [2.0, 3.0 + 1e-9])]
    assert show.conclusion(one(here, here)) != show.conclusion(one(here, again))


def test_suspect_points_are_no_part_of_a_mean_and_are_reported() -> None:
    doubtful = stored(spec_of(seed=3), [0.1, 0.2], Status.SUSPECT)
    comparison = compare(side(seeds([2.0, 3.0])), side([*seeds([2.1, 3.1]), doubtful]))
    (compared,) = comparison.compared
    assert compared.goodput.b.mean == pytest.approx(100 * 2.6 / 5)
    assert "1 suspect seed(s) left out" in shown(comparison)


def test_where_all_is_suspect_nothing_is_concluded() -> None:
    doubtful = [dataclasses.replace(p, status=Status.SUSPECT) for p in seeds([2.0, 3.0])]
    comparison = compare(side(doubtful), side(seeds([3.0, 4.2])))
    (compared,) = comparison.compared
    assert compared.goodput.suspect
    assert "suspect" in show.conclusion(compared)
    assert "50.0 %?" in shown(comparison)


def test_a_point_without_a_number_is_reported() -> None:
    comparison = compare(side([stored(spec_of(), [])]), side(seeds([2.0])))
    assert comparison.compared[0].goodput.how is How.NOTHING


def test_without_a_baseline_raw_goodput_is_compared() -> None:
    alone = Side(Path("b"), tuple(point_results.judge(seeds([2.5]))), ())
    compared = compare(side(seeds([2.0])), alone).compared[0]
    assert compared.unit == "Mb/s"
    assert compared.goodput.value == pytest.approx(0.5)


def test_machine_and_software_are_contrasted() -> None:
    here = {"kernel": "6.1.0", "cpu": "Xeon", "tools": {"iperf3": "3.12"}, "sysctls": {"net.x": "1"}}
    there = {"kernel": "6.18.0", "cpu": "Xeon", "tools": {"iperf3": "3.16"}, "counters": {"hops": 1}}
    comparison = compare(
        side([stored(spec_of(), [1.0], provenance=here)]), side([stored(spec_of(), [1.0], provenance=there)])
    )
    values = {fact.name: both for fact, both in comparison.provenance.items()}
    assert values == {
        "kernel": (("6.1.0",), ("6.18.0",)),
        "iperf3": (("3.12",), ("3.16",)),
        "net.x": (("1",), ()),
    }


def filled(results: Path, mbps: float, name: str = EXPERIMENT) -> Path:
    store = Store.open(results, name)
    put_baseline(store, spec_of(), 5.0)
    put(store, spec_of(), result_of([mbps, mbps + 1]))
    return store.directory


def test_folders_results_folders_and_points_can_be_compared(tmp_path: Path) -> None:
    a, b = filled(tmp_path / "here", 2.0), filled(tmp_path / "there", 3.0)
    point = next(path.name for path in a.iterdir() if "one_to_one" in path.name)
    for left, right in ((a, b), (tmp_path / "here", tmp_path / "there"), (a, tmp_path / "there"),
                        (a / point, b / point)):  # fmt: skip
        done = refabric("compare", left, right)
        assert done.exit_code == 0, done.output
        assert "50.0 %" in done.stdout
        assert "70.0 %" in done.stdout


def test_json_has_the_same_numbers(tmp_path: Path) -> None:
    done = refabric("compare", filled(tmp_path / "a", 2.0), filled(tmp_path / "b", 3.0), "--json")
    events = [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()]
    pairs = [e for e in events if e["event"] == "pair" and e["spec"]["workload"] != "reference"]
    assert len(pairs) == events[-1]["pairs"] == 1
    assert pairs[0]["goodput"]["difference"] == pytest.approx(20.0)
    assert pairs[0]["goodput"]["interval95_half"] is None


def test_what_cannot_be_compared_is_one_line_and_two(tmp_path: Path) -> None:
    good, empty = filled(tmp_path / "a", 2.0), tmp_path / "empty"
    empty.mkdir()
    several = tmp_path / "several"
    filled(several, 2.0, "one")
    filled(several, 2.0, "two")
    file = tmp_path / "file"
    file.write_text("")
    cases = {empty: "no points", several: "2 experiments", file: "is a file",
             tmp_path / "none": "no such folder", good: "with itself"}  # fmt: skip
    for bad, words in cases.items():
        done = refabric("compare", good, bad)
        assert done.exit_code == 2, (bad, done.output)
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert done.stdout == ""


def test_points_that_differ_in_any_field_but_seed_and_sampling_are_no_repetitions() -> None:
    spec = spec_of()
    others = [
        dataclasses.replace(spec, stack=StackSpec(sack=False)),
        dataclasses.replace(spec, transport=TransportSpec(8, "lia", join_after_ms=5.0)),
        dataclasses.replace(spec, link=dataclasses.replace(spec.link, random_pkts=5)),
        dataclasses.replace(spec, transport=TransportSpec(8, "lia", {"net.ipv4.tcp_sack": "0"})),
    ]
    fields = [fields_of(each) for each in (spec, *others)]
    assert all(a != b for i, a in enumerate(fields) for b in fields[i + 1 :])
    assert fields_of(dataclasses.replace(spec, seed=7)) == fields[0]
    assert fields[1]["stack"] == "sack=off"
    assert fields[4]["sysctl net.ipv4.tcp_sack"] == "0"
