"""flow-level and subflows-needed: their points, and that a small part of them runs."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from engines.registry import FLOW_LEVEL, MAX_MIN, SIMULATOR
from experiments.registry import CATALOGUE
from experiments.sigcomm11.flow_level import ENOUGH_PCT, NETWORKS
from model.spec import RunSpec
from tests.support.figures import points_of, refabric

pytestmark = pytest.mark.usefixtures("in_this_process")


def points(name: str, **given: str) -> list[RunSpec]:
    return points_of(CATALOGUE.find(name).figures[0], **given)


def test_every_packet_level_point_has_its_models_beside_it() -> None:
    specs = points("flow-level")
    of = {
        e: {(s.topology.k, s.transport.subflows) for s in specs if s.engine == e}
        for e in (SIMULATOR, FLOW_LEVEL, MAX_MIN)
    }
    assert of[SIMULATOR] < of[FLOW_LEVEL] == of[MAX_MIN]
    assert {(k, n) for k in (4, 8) for n in range(1, 9)} | {(16, 1), (16, 8)} == of[SIMULATOR]
    assert (32, 8) in of[FLOW_LEVEL]


def test_what_is_chosen_by_hand_is_run_whole() -> None:
    assert {s.engine for s in points("flow-level", k="32", subflows="8")} == {SIMULATOR, FLOW_LEVEL, MAX_MIN}
    assert {s.transport.subflows for s in points("subflows-needed", subflows="20")} == {20}


def test_three_kinds_of_network_grow_from_a_hundred_hosts_on() -> None:
    specs = points("subflows-needed")
    assert {spec.topology.kind for spec in specs} == {"fat_tree", "vl2", "bcube"}
    assert {spec.stack.acks for spec in specs} == {"routed"}
    small = [network for network in NETWORKS if network.packets]
    assert {s.topology.kind for s in specs if s.engine == SIMULATOR} == {n.topology.kind for n in small}


@pytest.mark.usefixtures("drawn")
def test_a_tree_of_128_hosts_is_used_to_ninety_percent_with_at_most_eight_subflows(tmp_path: Path) -> None:
    arguments = ("run", "flow-level", "--k", "8", "--subflows", "1,8", "--engine", "flow-level,max-min")
    done = refabric(*arguments, "--stack", "acks=at_once", "--results", tmp_path)
    assert done.exit_code == 0, done.output
    with (tmp_path / "flow-level" / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["workload"] == "one_to_one"]
    means = {(row["engine"], row["subflows"]): float(row["goodput_pct_mean"]) for row in rows}
    assert means["flow-level", "8"] >= ENOUGH_PCT > 50 > means["flow-level", "1"]
    assert {row["retransmits"] for row in rows} == {row["drops"] for row in rows} == {""}
    assert list((tmp_path / "flow-level" / "charts").glob("flow_level-*.svg"))


def test_larger_trees_are_run_with_fewer_subflows_for_less_time_unless_there_is_time() -> None:
    quick, many = points("fat-tree-sizes"), points("fat-tree-sizes", profile="paper")
    packets = {(s.topology.k, s.transport.subflows): s for s in quick if s.engine == SIMULATOR}
    assert set(packets) == {*((8, n) for n in range(1, 9)), (16, 1), (16, 4), (16, 8), (32, 1), (32, 8)}
    assert packets[8, 8].seconds > packets[16, 8].seconds > packets[32, 8].seconds
    models = {(s.topology.k, s.transport.subflows) for s in quick if s.engine == FLOW_LEVEL}
    assert models == set(packets)
    assert {(s.topology.k, s.transport.subflows) for s in many} == {
        *((k, n) for k in (8, 16, 32) for n in range(1, 9)),
        (48, 1),
        (48, 8),
    }
    chosen = points("fat-tree-sizes", k="48")
    assert {(s.topology.k, s.transport.subflows) for s in chosen} == {(48, 1), (48, 8)}
    assert {s.seconds for s in points("fat-tree-sizes", seconds=0.5)} == {0.5}  # type: ignore[arg-type]


def test_the_plan_gives_no_link_rate_for_a_tree_that_it_leaves_out() -> None:
    lines = refabric("plan", "fat-tree-sizes", "--engine", "simulator").stdout
    assert "k=32" in lines and "k=48" not in lines
