"""ec2: what it runs, what is read off it, and that MPTCP gains only where there are several paths."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

import topos
from analysis.sequential import PairTransfers, between_racks, gain, in_one_rack, pair_transfers
from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from experiments.registry import CATALOGUE
from harness.options.options import Defaults, UserOptions, resolve
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec

FIGURE = CATALOGUE.find("ec2").figures[0]


def points(defaults: Defaults = FIGURE.defaults, **given: str) -> list[RunSpec]:
    return FIGURE.points(resolve(UserOptions.of(**given), defaults), lambda _: 100.0)


def test_forty_hosts_for_minutes_and_twelve_hours_in_the_papers_profile() -> None:
    (quick,) = points()
    assert quick.topology.params == {"n": 40} and quick.seconds == 600
    assert not dataclasses.asdict(quick.sampling)["sockets_ms"]
    whole = points(profile="paper")
    assert sum(spec.seconds for spec in whole) == 12 * 3600
    (small,) = points(profile="smoke")
    assert len(topos.build("cloud", small.topology.params).hosts) == 16


def test_statements_are_about_what_is_run() -> None:
    assert FIGURE.emulated is not None
    run = {"simulator": points(), "mininet": points(FIGURE.emulated)}
    assert FIGURE.published
    for row in FIGURE.published:
        assert any(row.is_on(spec.topology) for spec in run[row.engine]), row
        assert {spec.transport.subflows for spec in run[row.engine]} == {row.subflows}


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
    SimulatorEngine().check(spec)
    result = SimulatorEngine().run(spec, Silent(), Path())
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
