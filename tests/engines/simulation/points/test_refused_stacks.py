"""Settings of end hosts that the simulator refuses, and its own settings that the emulator refuses."""

from __future__ import annotations

import dataclasses

import pytest

from common.errors import UsageError
from engines.emulation.engine import MininetEngine
from engines.simulation.engine import SimulatorEngine
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec


def spec(cc: str, subflows: int = 2, stack: StackSpec | None = None) -> RunSpec:
    return RunSpec(
        LinkSpec(10.0),
        TopologySpec("fat_tree", {"k": 4}),
        TransportSpec(subflows, cc),
        stack=stack or StackSpec(),
    )


@pytest.mark.parametrize("cc", ["bbr", "vegas"])
def test_a_congestion_control_it_does_not_have(cc: str) -> None:
    with pytest.raises(UsageError, match=f"no congestion control '{cc}': choose from: reno, cubic"):
        SimulatorEngine().check(spec(cc))


def test_its_own_congestion_controls_are_accepted() -> None:
    for cc in ("reno", "cubic", "ewtcp", "coupled", "lia", "olia", "balia"):
        SimulatorEngine().check(spec(cc))


def test_dctcp_needs_queues_that_mark() -> None:
    unmarked = spec("dctcp")
    with pytest.raises(UsageError, match="no queue marks packets, so it would run as reno: add --ecn"):
        SimulatorEngine().check(unmarked)
    SimulatorEngine().check(dataclasses.replace(unmarked, link=LinkSpec(10.0, ecn_pkts=20)))
    SimulatorEngine().check(dataclasses.replace(unmarked, workload=WorkloadSpec("reference")))


def test_the_emulator_has_no_fully_coupled_one() -> None:
    with pytest.raises(UsageError, match="congestion control coupled: no kernel has it"):
        MininetEngine().check(spec("coupled"))


def test_acknowledgements_are_routed_or_at_once() -> None:
    with pytest.raises(UsageError, match="acks 'magic': choose routed or at_once"):
        SimulatorEngine().check(spec("reno", stack=StackSpec(acks="magic")))
