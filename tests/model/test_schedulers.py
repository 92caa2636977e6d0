"""Central schedulers in a point: what can be asked for, and what they do to a simulated network."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topos
from common.errors import UsageError
from engines.flow_level.engine import check_steady
from engines.simulation.engine import SimulatorEngine
from model.result import RunResult
from model.schedulers import parse_scheduler, scheduler_words
from model.spec import LinkEvent, LinkSpec, RunSpec, SchedulerSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of

TREE = RunSpec(
    LinkSpec(20.0, 10.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(1),
    WorkloadSpec("stride", {"i": 4}),
    engine="simulator", warmup_s=2.0, seconds=3.0,
)  # fmt: skip
LOOP = replace(TREE, workload=WorkloadSpec("permuted_loop", {"sizes": "uniform-200000-4000000"}), seconds=6.0)


def total_mbps(result: RunResult) -> float:
    return sum(flow.goodput_mbps for flow in result.flows)


def with_scheduler(spec: RunSpec, text: str) -> RunSpec:
    return replace(spec, scheduler=parse_scheduler(text))


@pytest.mark.parametrize(
    ("text", "chosen", "words"),
    [
        ("none", SchedulerSpec(), ""),
        ("first_fit", SchedulerSpec("first_fit", 100), "first_fit:100"),
        ("annealing:2.5", SchedulerSpec("annealing", 2.5), "annealing:2.5"),
        ("first_fit:ideal", SchedulerSpec("first_fit"), "first_fit:ideal"),
    ],
)
def test_what_is_typed(text: str, chosen: SchedulerSpec, words: str) -> None:
    assert parse_scheduler(text) == chosen
    assert scheduler_words(chosen) == words


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("last_fit", "choose from: none, first_fit, annealing"),
        ("first_fit:", "write NAME:MS"),
        ("first_fit:0", "write NAME:MS"),
        ("first_fit:soon", "or NAME:ideal"),
        ("first_fit:nan", "write NAME:MS"),
        ("none:10", "'none' takes no interval"),
    ],
)
def test_what_is_typed_wrong(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_scheduler(text)


def test_schedulers_are_part_of_a_points_name_and_come_back_from_json() -> None:
    assert with_scheduler(TREE, "none").content_hash() == TREE.content_hash()
    chosen = [with_scheduler(TREE, f"first_fit:{each}") for each in ("ideal", "10", "100")]
    assert len({spec.content_hash() for spec in (TREE, *chosen)}) == 4
    assert RunSpec.from_json(chosen[0].to_json()) == chosen[0]


@pytest.mark.parametrize("name", ["first_fit", "annealing"])
def test_an_ideal_scheduler_gives_each_flow_of_a_stride_links_of_its_own(name: str) -> None:
    """All 16 flows cross the core, which has room for them; hashed they collide."""
    hashed, scheduled = result_of(TREE), result_of(with_scheduler(TREE, f"{name}:ideal"))
    assert total_mbps(scheduled) > 0.9 * 16 * 20 * 1448 / 1514 > 1.2 * total_mbps(hashed)
    assert scheduled.metrics["scheduler_ticks"] == 1
    assert 1 <= scheduled.metrics["scheduler_moves"] <= 16
    busiest = max(port.utilisation_pct for port in scheduled.ports if "host" not in port.layer)
    assert busiest <= 100.1


def test_polling_every_switch_is_counted() -> None:
    """20 switches are asked and answer; each of 16 flows is reported once; 5 switches per path get rules."""
    counts = result_of(with_scheduler(TREE, "annealing:ideal")).metrics
    rules = 5 * counts["scheduler_moves"]
    assert counts["scheduler_messages"] == 2 * 20 + rules
    assert counts["scheduler_octets"] == 20 * (122 + 82) + 16 * 120 + rules * 186


def test_a_frequent_scheduler_carries_more_of_flows_that_come_and_go_than_a_rare_one() -> None:
    """A flow lasts a second or so: between two looks ten seconds apart no flow lasts that could be moved."""
    loop = replace(LOOP, seed=3)
    never = total_mbps(result_of(loop))
    often = result_of(with_scheduler(loop, "first_fit:20"))
    assert often.metrics["scheduler_ticks"] == 400
    assert total_mbps(often) > 1.1 * never
    seldom = result_of(with_scheduler(loop, "first_fit:8000"))
    assert seldom.metrics["scheduler_ticks"] == 1
    assert total_mbps(seldom) == pytest.approx(never, rel=0.01)


def test_ticks_are_at_exact_times_whatever_else_is_looked_at() -> None:
    """300 ms do not divide the second at which links are read."""
    assert result_of(with_scheduler(TREE, "first_fit:300")).metrics["scheduler_ticks"] == 16


def test_the_same_spec_gives_the_same_twice() -> None:
    spec = with_scheduler(LOOP, "annealing:100")
    one, other = result_of(spec), result_of(spec)
    assert repr((one.flows, one.ports, one.metrics)) == repr((other.flows, other.ports, other.metrics))
    assert one.samples == other.samples


def test_the_seed_decides_how_annealing_goes() -> None:
    tree = replace(TREE, seconds=0.2, warmup_s=0.1)
    moves = [result_of(with_scheduler(replace(tree, seed=n), "annealing:ideal")).metrics for n in (1, 2, 3)]
    assert len({each["scheduler_moves"] for each in moves}) > 1


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"routing": "scatter"}, "each packet chooses its own path"),
        ({"events": (LinkEvent(1.0, "p0a0", "c0"),)}, "do not handle link failures"),
        ({"topology": TopologySpec("bcube", {"n": 4})}, "its hosts forward"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(changed: dict[str, object], why: str) -> None:
    spec = replace(with_scheduler(TREE, "first_fit:100"), **changed)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=why):
        SimulatorEngine().check(spec)


def test_flow_level_models_have_no_schedulers() -> None:
    with pytest.raises(UsageError, match="does not support central schedulers"):
        check_steady(
            replace(with_scheduler(TREE, "first_fit:100"), engine="flow-level"),
            topos.build("fat_tree", {"k": 4}),
            (),
        )
