"""Points about SIP calls in the simulator: the ladder's order, knees, controllers, refused specs."""

from __future__ import annotations

import dataclasses

import pytest

from common.errors import UsageError
from engines.flow_level.engine import FlowLevelEngine
from engines.ims.calls import COLUMNS
from engines.simulation.engine import SimulatorEngine
from harness.execute.point import audited
from model.reasons import NO_DATA
from model.result import Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of
from workloads import matrices

ENGINE = SimulatorEngine()


def spec_of(workload: str, seconds: float = 30.0, seed: int = 1) -> RunSpec:
    name, params = matrices.parse(workload)
    return RunSpec(
        LinkSpec(100.0, delay_us=50.0), TopologySpec("star", {"n": 14}), TransportSpec(1),
        WorkloadSpec(name, params), engine="simulator", warmup_s=0.0, seconds=seconds, seed=seed,
    )  # fmt: skip


def test_a_carried_load_completes_as_offered() -> None:
    metrics = result_of(spec_of("sip:90")).metrics
    assert metrics["calls_failed_per_s"] == metrics["sip_retransmitted_per_s"] == 0
    assert metrics["calls_lost_pct"] < 2
    assert metrics["pcscf_drops_per_s"] == metrics["scscf_drops_per_s"] == 0
    assert 20 < metrics["setup_ms_p50"] < metrics["setup_ms_p95"] <= metrics["setup_ms_p99"] < 200
    assert metrics["instance_s"] == 60


@pytest.mark.parametrize("scale", ["", ":scale=50:arrivals=constant"])
def test_the_s_cscf_is_first_and_the_p_cscf_next(scale: str) -> None:
    first = result_of(spec_of(f"sip:130{scale}")).metrics
    assert first["scscf_onset_s"] < first.get("pcscf_onset_s", 30)
    assert first["calls_failed_per_s"] > 1
    assert first["scscf_cpu_pct"] < 20
    second = result_of(spec_of(f"sip:180:scscf=2{scale}")).metrics
    assert second["pcscf_onset_s"] < second.get("scscf_onset_s", 30)
    assert second["setup_ms_p50"] > 300


def test_the_scale_changes_rates_and_times_but_not_the_knees() -> None:
    whole, half = (
        result_of(spec_of(f"sip:90:arrivals=constant:scale={scale}")).metrics for scale in (100, 50)
    )
    assert half["calls_offered_per_s"] == pytest.approx(whole["calls_offered_per_s"] / 2, rel=0.02)
    assert half["pcscf_busy_pct"] == pytest.approx(whole["pcscf_busy_pct"], rel=0.05)
    assert half["pcscf_knee_per_s"] == whole["pcscf_knee_per_s"]


def test_computed_knees_are_where_functions_are_full() -> None:
    metrics = result_of(spec_of("sip:140:scscf=4:arrivals=constant")).metrics
    predicted = 100 * 140 / metrics["pcscf_knee_per_s"]
    assert 90 < predicted < 100
    assert metrics["pcscf_busy_pct"] == pytest.approx(predicted, abs=2)


def test_a_controller_saves_calls_and_cpu_use_cannot_see_the_s_cscf() -> None:
    lost, most = {}, {}
    for policy in ("static", "queue", "cpu", "latency"):
        result = result_of(spec_of(f"sip:180:policy={policy}", 40.0))
        lost[policy] = result.metrics["calls_lost_pct"]
        most[policy] = result.metrics["pcscf_most"], result.metrics["scscf_most"]
    assert lost["queue"] < 2 and lost["latency"] < 2
    assert lost["static"] > 30 and lost["cpu"] > 30
    assert most["static"] == (1, 1)
    assert most["cpu"][1] == 1 < most["queue"][1]


def test_an_overload_outlasts_its_cause_until_the_load_falls() -> None:
    load = "sip:180:scscf=2:load=140+180+140+60+140"
    calls = result_of(spec_of(load, 150.0)).samples["calls"]
    completed = [float(calls["completed"][start : start + 20].mean()) for start in (5, 35, 65, 98, 125)]
    before, pulse, after, low, again = completed
    assert before > 110 and pulse < 110
    assert after < 0.75 * before
    assert low > 55 and again > 110


def test_tables_have_a_row_per_second() -> None:
    result = result_of(spec_of("sip:90:pcscf=2", 10.0))
    for name, columns in COLUMNS.items():
        assert tuple(result.samples[name].columns) == tuple(columns)
    assert result.samples["calls"]["t_s"].tolist() == list(range(1, 11))
    assert set(result.samples["components"]["name"].tolist()) == {"p1", "p2", "s1"}
    offered = int(result.samples["calls"]["offered"].sum())
    assert offered == pytest.approx(10 * result.metrics["calls_offered_per_s"])


def test_the_same_spec_gives_the_same_result() -> None:
    one, same, other = (result_of(spec_of("sip:130", seed=seed)) for seed in (1, 1, 2))
    assert one.metrics == same.metrics and one.samples == same.samples
    assert one.metrics != other.metrics


def test_a_result_without_a_call_is_failed_and_without_one_that_ended_suspect() -> None:
    spec = spec_of("sip:90", 5.0)
    result = result_of(spec)
    assert audited(dataclasses.replace(result, metrics={}), spec).status is Status.FAILED
    assert audited(result, spec).status is Status.OK
    ended = {"calls_completed_per_s": 0.0, "calls_failed_per_s": 0.0}
    none = dataclasses.replace(result, metrics={**result.metrics, **ended})
    assert [reason.kind for reason in audited(none, spec).reasons] == [NO_DATA]
    lost = dataclasses.replace(result, metrics={**none.metrics, "calls_failed_per_s": 1.0})
    assert audited(lost, spec).status is Status.OK


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("sip:0", "calls must be from 1"),
        ("sip:130:policy=magic", "policy must be"),
        ("sip:130:load=130++180", "load must be"),
        ("sip:130:load=fast", "load must be"),
        ("sip:130:pcscf=7", "needs 16 hosts"),
        ("sip:130:workers=0", "workers must be"),
        ("sip:130:arrivals=often", "arrivals must be"),
    ],
)
def test_wrong_workloads_are_refused(workload: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ENGINE.check(spec_of(workload))


def test_other_specs_are_refused() -> None:
    spec = spec_of("sip:130")
    for change, message in (
        ({"seconds": 2.0}, "at least 5"),
        ({"seconds": 10.5}, "whole seconds"),
        ({"transport": TransportSpec(2)}, "--subflows"),
    ):
        with pytest.raises(UsageError, match=message):
            ENGINE.check(dataclasses.replace(spec, **change))
    with pytest.raises(
        UsageError, match="--engine flow-level cannot run it; choose --engine simulator or mininet"
    ):
        FlowLevelEngine("flow-level").check(dataclasses.replace(spec, engine="flow-level"))


def test_ten_thousand_calls_a_second_are_carried() -> None:
    spec = dataclasses.replace(
        spec_of("sip:10000:registrations=3000:pcscf=70:scscf=68", 5.0),
        topology=TopologySpec("star", {"n": 142}),
    )
    metrics = result_of(spec).metrics
    assert metrics["calls_offered_per_s"] == pytest.approx(10_000, rel=0.02)
    assert metrics["calls_failed_per_s"] == 0 and metrics["sip_retransmitted_per_s"] == 0
