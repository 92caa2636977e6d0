"""Names that Python and the core share: options, which reach the core in its units, and readings."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from engines import core_setup
from engines.core_setup import NOT_THE_CORES, assign, in_core_units, transport_options
from fabric import readings
from fabric._core import FlowDriver, Ims, Simulation, TransportOptions, VirtualFabric
from model.spec import AgentSpec, LinkSpec, RunSpec, StackSpec
from tests.support.core_networks import one_switch
from tests.support.specs.other_values import fields_of, other

SPEC = RunSpec(LinkSpec(10.0))
DEFAULTS = transport_options(SPEC)


@pytest.mark.parametrize("field", list(fields_of(StackSpec())))
def test_a_field_reaches_the_core(field: str) -> None:
    changed = dataclasses.replace(SPEC.stack, **{field: other(f"stack.{field}")})
    options = transport_options(dataclasses.replace(SPEC, stack=changed))
    ((name, value),) = set(in_core_units(changed).items()) - set(in_core_units(SPEC.stack).items())
    if name not in NOT_THE_CORES:
        seen = getattr(options, name)
        assert (seen.name if isinstance(seen, Enum) else seen) == value != getattr(DEFAULTS, name)


def test_times_are_in_picoseconds_and_nothing_else_changes() -> None:
    assert in_core_units(AgentSpec(1.5, 0.25, 7)) == {
        "delay_ps": 1_500_000, "jitter_ps": 250_000, "report_ps": 7_000_000
    }  # fmt: skip
    assert in_core_units(StackSpec(min_rto_ms=2.5))["min_rto_ps"] == 2_500_000_000


@dataclass(frozen=True)
class Misspelt(StackSpec):
    min_rtt_ms: float = 1.0


def test_a_field_that_only_the_spec_has_is_an_error() -> None:
    with pytest.raises(TypeError, match="min_rtt_ps"):
        transport_options(dataclasses.replace(SPEC, stack=Misspelt()))


def test_a_field_that_only_the_core_has_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_setup, "NOT_THE_CORES", NOT_THE_CORES | {"sack"})
    with pytest.raises(TypeError, match="sack"):
        transport_options(SPEC)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"min_rto": 1}, AttributeError),
        ({"min_rto_ps": 1.5}, TypeError),
        ({"min_rto_ps": "1"}, TypeError),
        ({"payload_bytes": 1 << 16}, TypeError),
        ({"probe_after": -1}, TypeError),
        ({"rank": "length"}, KeyError),
        ({"scheduler": "none"}, ValueError),
    ],
)
def test_a_wrong_name_or_type_is_refused(values: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        assign(TransportOptions(), values)


def test_readings_have_the_keys_of_their_types() -> None:
    plan = one_switch(2, 10_000_000, 0, queue_pkts=0)
    simulation = Simulation(plan, DEFAULTS, [])
    ims = Ims(
        pcscf_ps=1, scscf_ps=1, lookup_ps=1, workers=1, buffer=1, hop_ps=1, hold_ps=1, patience_ps=1,
        poisson=False, seed=1,
    )  # fmt: skip
    ims.add("pcscf")
    read: dict[type, Any] = {
        readings.SimulatedCounters: simulation.ports(),
        readings.FlowReadings: simulation.flows(),
        readings.DatagramReadings: simulation.datagrams(),
        readings.NoiseReadings: simulation.noise(),
        readings.SubflowReadings: simulation.subflows(),
        readings.AgentReadings: simulation.agent(),
        readings.Counters: VirtualFabric(plan).counters(),
        readings.TrafficReadings: FlowDriver([], []).readings(),
        readings.ImsServer: ims.servers()[0],
        readings.ImsCounts: ims.counts(),
    }
    for kind, found in read.items():
        assert found.keys() == kind.__annotations__.keys(), kind
