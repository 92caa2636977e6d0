"""The experiments dctcp and pfabric: their points, what their metrics read, and what they refuse."""

from __future__ import annotations

import dataclasses
import math

import pytest

import topos
from common.errors import UsageError
from engines.emulation.dataplanes.ovs import dataplane
from engines.registry import SIMULATOR, make
from experiments import dctcp
from experiments.cs244_2017 import FINDINGS, P99_AGAINST_MEAN
from experiments.pfabric import MINTCP_OVER_IDEAL, OVERALL, TCP_GAP_GROWTH
from experiments.registry import CATALOGUE
from fabric.plan import FRAME_BITS
from harness.baseline import baseline_of
from harness.claims.claims import AGREES, DIFFERS, UNDECIDED, verdict_of
from harness.claims.own_settings import OwnSettings
from harness.labels import beside, label, shared
from harness.results.point_results import PointResult
from model import tuning
from model.arms import ARMS, COMPARED, PARTS, TWINS, arm_of
from model.spec import RunSpec, sub_seed
from tests.support.figures import figure_of, points_of
from tests.support.judged_points import with_flows, with_times_alone
from workloads import matrices


def specs(**given: object) -> list[RunSpec]:
    return points_of(figure_of("dctcp"), **given)


def test_three_transports_differ_in_what_they_do_about_marks_alone() -> None:
    found = specs()
    assert [(s.transport.cc, s.link.ecn_pkts) for s in found] == [("reno", 0), ("reno", 20), ("dctcp", 20)]
    first = found[0]
    assert all(dataclasses.replace(s, link=first.link, transport=first.transport) == first for s in found)


@pytest.mark.parametrize("senders", [4, 8, 16])
def test_every_host_but_one_sends_to_that_one(senders: int) -> None:
    for spec in specs(k=str(senders)):
        network = spec.network()
        seed = sub_seed(spec.seed, "workload")
        flows = matrices.build(spec.workload.matrix, network, spec.workload.params, seed)
        assert len(flows) == len({flow.src for flow in flows}) == senders
        assert len({flow.dst for flow in flows}) == 1


def test_the_threshold_is_where_theory_lets_dctcp_and_not_reno_fill_the_link() -> None:
    link = specs()[0].link
    ways = 4 * link.delay_us / 1e6  # two links there, two back
    packets_s = link.rate_mbps * 1e6 / FRAME_BITS
    holds = packets_s * ways
    threshold = dctcp.DEFAULTS["link.ecn_pkts"]
    assert holds / 7 < threshold < holds
    lowest = threshold + dctcp.SENDERS - (2 * dctcp.SENDERS * (holds + threshold)) ** 0.5 / 2
    assert lowest > 0, "section 3.3 of the paper: the queue never runs empty"


def test_what_cannot_show_it_is_refused() -> None:
    with pytest.raises(UsageError, match="--ecn 0"):
        specs(ecn=0)
    with pytest.raises(UsageError, match="choose their number with --k"):
        specs(workload="one_to_one")


def test_the_baseline_is_not_marked() -> None:
    assert {baseline_of(spec).link.ecn_pkts for spec in specs()} == {0}


def test_three_transports_meet_the_same_flows_at_every_load() -> None:
    specs = points_of(figure_of("short-flows"))
    transports = [("reno", 1, 0), ("dctcp", 1, 20), ("lia", 4, 0)]
    for load in (20, 40, 60):
        at_load = [spec for spec in specs if spec.workload.params["load"] == load]
        assert [(s.transport.cc, s.transport.subflows, s.link.ecn_pkts) for s in at_load] == transports
        assert len({(s.seed, s.workload.matrix, s.topology.k, s.stack) for s in at_load}) == 1
    assert {spec.engine for spec in specs} == {"simulator"}


def test_sizes_and_loads_are_options() -> None:
    specs = points_of(figure_of("short-flows"), workload="poisson:80:sizes=datamining", subflows="8", k="8")
    assert {spec.workload.params["sizes"] for spec in specs} == {"datamining"}
    assert {spec.transport.subflows for spec in specs} == {1, 8}
    assert {spec.topology.k for spec in specs} == {8}


def test_short_flows_beside_long_ones_are_those_of_the_paper() -> None:
    specs = points_of(figure_of("short-beside-long"))
    transports = [("reno", 1), ("reno", 1), ("lia", 8), ("ewtcp", 8), ("reno", 8)]
    assert [(s.transport.cc, s.transport.subflows) for s in specs] == transports
    assert {len(topos.build(s.topology.kind, s.topology.params).hosts) for s in specs} == {512}
    assert {s.stack.min_rto_ms for s in specs} == {1.0}
    assert {(s.routing, s.stack.dup_threshold) for s in specs} == {("hashed", 0), ("scatter", 19)}


def test_when_further_subflows_join_is_all_that_differs() -> None:
    specs = points_of(figure_of("short-joins"))
    labels = [tuning.joins(s.transport) for s in specs]
    assert labels == ["", "after 1 MB", "after 100 kB", "after 100 ms", "after 10 ms", "at once"]
    assert len({(s.workload.matrix, s.stack, s.link) for s in specs}) == 1


FIGURES = {figure.name: figure for figure in CATALOGUE.find("pfabric").figures}


def points(name: str, **given: str) -> list[RunSpec]:
    return points_of(figure_of(name), **given)


def test_every_arm_meets_the_same_flows_at_every_load() -> None:
    specs = points("pfabric-overall")
    assert len(specs) == 2 * 8 * 5
    for load in range(10, 81, 10):
        for sizes in ("websearch", "datamining"):
            here = [s for s in specs if s.workload.params == {"load": load, "sizes": sizes}]
            assert [arm_of(s) for s in here] == list(COMPARED)
            assert len({(s.seconds, s.warmup_s, s.seed, s.link.rate_mbps) for s in here}) == 1


def test_a_lower_load_runs_longer_for_as_many_bytes() -> None:
    seconds = {
        s.workload.params["load"]: s.seconds for s in points("pfabric-overall", workload="pairs:20,pairs:80")
    }
    assert seconds[20] == pytest.approx(4 * seconds[80])


@pytest.mark.parametrize(
    ("name", "links", "round_trip_us"), [("overall", 4, 14.6), ("star", 2, 13.3), ("fat-tree", 6, 12.0)]
)
def test_the_longest_round_trip_is_the_papers_and_fills_no_window(
    name: str, links: int, round_trip_us: float
) -> None:
    """A packet of 1500 bytes there and 40 bytes back; the leaf-spine's inner links are four times as fast."""
    spec = points(f"pfabric-{name}", workload="pairs:80")[1]
    speed = int(spec.topology.params.get("speed", 1))
    byte_us = 8 / spec.link.rate_mbps
    sending_us = 1540 * byte_us * (2 + (links - 2) / speed)
    waiting_us = 2 * (links * spec.link.delay_us + 2 * spec.link.host_delay_us)
    assert sending_us + waiting_us == pytest.approx(round_trip_us, abs=0.1)
    assert (sending_us + waiting_us) / (1500 * byte_us) < 12.5


def test_every_part_is_one_change() -> None:
    specs = points("pfabric-parts", workload="pairs:80")
    assert [arm_of(s) for s in specs] == list(PARTS)


@pytest.mark.parametrize("name", ["pfabric-overall", "pfabric-parts", "cs244-2017-post", "cs244-2017-parts"])
def test_points_are_told_apart_in_the_plan_and_in_progress_lines(name: str) -> None:
    specs = points(name)
    assert len({label(spec) for spec in specs}) == len(specs)
    assert len({beside(spec, shared(specs)) for spec in specs}) == len(specs)


def test_the_papers_values_are_among_those_of_the_sensitivity() -> None:
    specs = points("pfabric-sensitivity")
    assert [arm_of(s) for s in specs].count("mintcp") == 1
    assert all(s.stack.max_window * 1500 < s.link.queue_bytes for s in specs)


def test_a_brief_profile_has_small_networks() -> None:
    assert all(s.topology.k <= 6 for name in FIGURES for s in points(name, profile="smoke"))


def test_the_engine_ideal_runs_its_arm_alone() -> None:
    specs = points("pfabric-overall", workload="pairs:10", engine="ideal")
    assert [(arm_of(s), s.engine) for s in specs] == [("ideal", "ideal")]


@pytest.mark.parametrize("text", ["pairs:100", "pairs:0", "pairs:150"])
def test_a_load_without_a_steady_state_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="load must be from 1 to 99"):
        make("simulator").check(points("pfabric-overall", workload=text)[1])


def test_open_vswitch_names_the_data_plane_that_has_the_discipline() -> None:
    spec = points("pfabric-overall", workload="pairs:10")[2]
    link = dataclasses.replace(spec.link, host_delay_us=0.0)
    spec = dataclasses.replace(spec, dataplane="ovs", routing="ecmp", link=link)
    with pytest.raises(UsageError, match=r"discipline pfabric .*choose --dataplane fabric"):
        dataplane.check(spec, spec.network())


def test_metrics_compare_arms_of_one_load_and_their_growth_two() -> None:
    slow = {("mintcp", 20): 1.1, ("mintcp", 80): 1.2, ("ideal", 80): 1.0, ("tcp", 20): 2.2, ("tcp", 80): 9.6}
    specs = points("pfabric-overall", workload="pairs:20,pairs:80")
    found = [
        with_times_alone(spec, slow[key])
        for spec in specs
        if (key := (arm_of(spec), int(spec.workload.params["load"]))) in slow
    ]
    row = next(each for each in OVERALL if each.metric is MINTCP_OVER_IDEAL)
    measured = MINTCP_OVER_IDEAL.measure(found, row)
    assert measured is not None and math.isclose(measured.value, 1.2)
    growth = TCP_GAP_GROWTH.measure(found, row)
    assert growth is not None and math.isclose(growth.value, (9.6 / 1.2) / (2.2 / 1.1))


@pytest.mark.parametrize(("unfinished", "word"), [(0, AGREES), (80, DIFFERS), (120, UNDECIDED)])
def test_unfinished_flows_are_said_and_most_of_them_decide_nothing(unfinished: int, word: str) -> None:
    specs = points("pfabric-overall", workload="pairs:80")
    found = [
        with_times_alone(spec, 1.0, unfinished if arm_of(spec) == "mintcp" else 0)
        for spec in specs
        if arm_of(spec) in {"mintcp", "ideal"}
    ]
    row = next(each for each in OVERALL if each.metric is MINTCP_OVER_IDEAL)
    verdict = verdict_of(row, found, OwnSettings([]))
    assert verdict.measured is not None and verdict.word == word
    assert verdict.measured.unfinished_pct == unfinished / 2


def test_a_tail_that_follows_the_mean_is_told_from_one_that_does_not() -> None:
    specs = [s for s in points("cs244-2017-post", workload="pairs:20,pairs:40,pairs:60,pairs:80")]
    bands = [spec for spec in specs if arm_of(spec) == "star-bands"]
    row = next(each for each in FINDINGS if each.metric is P99_AGAINST_MEAN)
    row = dataclasses.replace(row, workload="pairs:80")
    for means, tails, apart in (((2, 3, 4, 5), (9, 10, 11, 12), 0.0), ((2, 3, 4, 5), (9, 8, 7, 12), 200 / 3)):
        found = [_with_tail(*of) for of in zip(bands, means, tails, strict=True)]
        measured = P99_AGAINST_MEAN.measure(found, row)
        assert measured is not None and measured.value == pytest.approx(apart)


def _with_tail(spec: RunSpec, mean: float, tail: float) -> PointResult:
    """Return a point whose 200 flows have this mean and this 99th percentile of times alone."""
    point = with_times_alone(spec, (200 * mean - 4 * tail) / 196)
    slow = dataclasses.replace(point.flows[0], completed_s=tail * 1e-5)
    flows = (*point.flows[:196], *(slow,) * 4)
    return with_flows(point, flows)


def test_every_arm_is_found_by_its_settings() -> None:
    names = ("pfabric-overall", "pfabric-parts", "cs244-2017-post", "cs244-2017-parts", "cs244-2017-hosts")
    specs = [spec for name in names for spec in points(name, workload="pairs:80")]
    assert {arm_of(s) for s in specs} == set(ARMS)


def test_timeouts_follow_the_round_trip_of_faster_links_but_not_those_of_tcp() -> None:
    slow, fast = (points(f"cs244-2017-{name}", workload="pairs:40") for name in ("hosts", "100mbps"))
    simulated = [spec for spec in slow if spec.engine == SIMULATOR]
    assert [arm_of(spec) for spec in fast] == [arm_of(spec) for spec in simulated] == list(TWINS)
    shares = [
        one.stack.min_rto_ms / other.stack.min_rto_ms for one, other in zip(fast, simulated, strict=True)
    ]
    assert shares == pytest.approx([1.0, 0.1, 0.1])
    assert fast[0].link.host_delay_us == pytest.approx(simulated[0].link.host_delay_us / 10)
