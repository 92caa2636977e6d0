"""ec2: what it runs, what is read off it, and that MPTCP gains only where there are several paths."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

import topos
from analysis.sequential import PairTransfers, between_racks, gain, in_one_rack, pair_transfers
from experiments.sigcomm11.hedera import EXPERIMENT, INTERVALS_MS, OVER_FIRST_FIT
from experiments.sigcomm11.robustness import LINK_FAILURE, LOSS_AND_COST
from harness.labels import workload_label
from harness.plan.sweeps import core_failure
from model.links import check_events
from model.schedulers import scheduler_words
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.figures import events_of, figure_of, points_of, refabric, simulate

EC2_FIGURE = figure_of("ec2")


def test_forty_hosts_for_minutes_and_twelve_hours_in_the_papers_profile() -> None:
    (quick,) = points_of(EC2_FIGURE)
    assert quick.topology.params == {"n": 40} and quick.seconds == 600
    assert not dataclasses.asdict(quick.sampling)["sockets_ms"]
    whole = points_of(EC2_FIGURE, profile="paper")
    assert sum(spec.seconds for spec in whole) == 12 * 3600
    (small,) = points_of(EC2_FIGURE, profile="smoke")
    assert len(topos.build("cloud", small.topology.params).hosts) == 16


def test_transfers_are_paired_and_gain_where_there_are_paths() -> None:
    """Small, but real: 4 racks with 8, 6, 4 and 2 uplinks, six busy neighbours in each."""
    spec = RunSpec(
        LinkSpec(20.0),
        TopologySpec("cloud", {"n": 8, "racks": 4, "tenants": 6}),
        TransportSpec(4, "lia"),
        WorkloadSpec("in_turn", {"size_ms": 500, "busy_ms": 5000, "idle_ms": 500}),
        engine="simulator",
        warmup_s=5.0,
        seconds=120.0,
    )
    result = simulate(spec)
    made = pair_transfers(result.flows)
    assert len(made) > 30
    assert all(set(turn.mbps) == {1, 2, 4} and 0 < max(turn.mbps.values()) < 20 for turn in made)
    assert len({(turn.src, turn.dst) for turn in made[:56]}) == len(made[:56])
    between, inside = gain(between_racks(made), 4), gain(in_one_rack(made), 4)
    assert between is not None and inside is not None
    assert between > 1.1
    assert inside == pytest.approx(1, abs=0.05)
    ours = [flow for flow in result.flows if flow.src[2] == "h"]
    running = [flow for flow in ours if flow.start_s == flow.start_s]
    for before, after in itertools.pairwise(running):
        assert after.start_s >= before.start_s + before.completed_s, "one at a time"


def test_a_gain_needs_six_pairs() -> None:
    made = [PairTransfers("r0h0", "r1h0", 6, {1: 10.0, 2: 15.0, 4: 20.0})] * 6
    assert gain(made, 4) == pytest.approx(2)
    assert gain(made[:5], 4) is None


pytestmark = pytest.mark.usefixtures("in_this_process")

(HEDERA_FIGURE,) = EXPERIMENT.figures


def test_every_scheduler_runs_at_every_interval_beside_tcp_and_mptcp() -> None:
    specs = points_of(HEDERA_FIGURE)
    for workload in {workload_label(spec) for spec in specs}:
        here = [spec for spec in specs if workload_label(spec) == workload]
        led = [scheduler_words(spec.scheduler) for spec in here]
        assert len(here) == 2 + 2 * len(INTERVALS_MS)
        assert {"first_fit:ideal", "first_fit:10", "annealing:1000"} < set(led) and led.count("") == 2
        assert {spec.transport.subflows for spec in here if not scheduler_words(spec.scheduler)} == {1, 8}
    assert {row.metric for row in HEDERA_FIGURE.published} == set(OVER_FIRST_FIT.values())


def test_real_hosts_run_what_they_can() -> None:
    assert HEDERA_FIGURE.emulated is not None
    specs = points_of(HEDERA_FIGURE, HEDERA_FIGURE.emulated)
    led = [spec.scheduler for spec in specs if scheduler_words(spec.scheduler)]
    assert len(specs) == 10 and len(led) == 6 and not any(each.ideal for each in led)
    assert {spec.engine for spec in specs} == {"mininet"} and {spec.topology.k for spec in specs} == {4}


@pytest.mark.usefixtures("drawn")
def test_a_small_tree_gives_every_statement_a_number(tmp_path: Path) -> None:
    """Verdicts need the paper's size; this only tests that the metric finds its points."""
    short = ("--k", "4", "--warmup", "0.1", "--seconds", "0.8", "--results", tmp_path)
    done = refabric("run", "hedera", *short, "--json")
    assert done.exit_code == 0 and len(events_of(done, "point")) == 25, done.output
    assert list((tmp_path / "hedera" / "charts").rglob("scheduling*.svg"))


def test_a_scheduler_is_an_option_of_any_sweep(tmp_path: Path) -> None:
    options = ("--k", "4", "--engine", "simulator", "--subflows", "1", "--scheduler", "first_fit:50")
    planned = refabric("plan", "cs244-one-to-one", *options, "--results", tmp_path)
    assert planned.exit_code == 0 and "first fit every 50 ms" in planned.output
    wrong = refabric("plan", "cs244-one-to-one", "--scheduler", "best_fit")
    assert wrong.exit_code == 2 and "choose from: none, first_fit, annealing" in wrong.stderr


def test_tcp_is_run_once_beside_both_congestion_controls() -> None:
    made = [(p.transport.cc, p.transport.subflows) for p in points_of(LOSS_AND_COST)]
    assert made == [("lia", 1), ("lia", 2), ("lia", 4), ("lia", 8), ("reno", 2), ("reno", 4), ("reno", 8)]


@pytest.mark.parametrize(("k", "switches"), [(4, 1), (6, 2), (8, 4)])
def test_a_quarter_of_the_core_fails_and_comes_back(k: int, switches: int) -> None:
    (spec,) = points_of(LINK_FAILURE, k=str(k), subflows="8")
    assert len(spec.events) == 2 * switches * k
    check_events(spec, spec.network())
    cut = [event for event in spec.events if not event.share]
    assert {event.t_s for event in cut} == {6.0}
    assert {event.t_s for event in spec.events if event.share} == {10.0}
    assert {event.b for event in cut} == {f"c{c}" for c in range(switches)}


def test_events_of_ones_own_go_before_the_figures() -> None:
    (spec,) = points_of(LINK_FAILURE, k="4", subflows="8", event=("3:p0a0-c0",))
    assert [(event.t_s, event.a, event.b) for event in spec.events] == [(3.0, "p0a0", "c0")]


def test_a_network_without_a_core_has_nothing_to_fail() -> None:
    assert core_failure(TopologySpec("star", {"n": 4}), 1.0, 2.0) == ()


def test_statements_of_whose_digits_nothing_is_known_say_so() -> None:
    rows = (*LOSS_AND_COST.published, *LINK_FAILURE.published)
    assert {row.source for row in rows} == {"recalled"}
