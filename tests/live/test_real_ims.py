"""Real SIP servers between emulated hosts: calls complete, service times are as set, nothing is left."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engines.emulation.engine import MininetEngine
from engines.emulation.ims import checks
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.machine_noise import exact, run_once
from workloads import matrices

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.physics,
    pytest.mark.skipif(bool(checks.missing()), reason=f"missing programs: run {checks.INSTALL}"),
]


def spec_of(workload: str, seconds: float) -> RunSpec:
    name, params = matrices.parse(workload)
    return RunSpec(
        link=LinkSpec(100.0, delay_us=50.0, queue_pkts=1000, nic_queue_pkts=1000),
        topology=TopologySpec("star", {"n": 6}),
        transport=TransportSpec(1),
        workload=WorkloadSpec(name, params),
        warmup_s=0.0,
        seconds=seconds,
    )


def programs() -> list[str]:
    """Return the SIP servers, SIPps and stores that run on this machine."""
    names = (entry / "comm" for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    running = [name.read_text().strip() for name in names if name.exists()]
    return [name for name in running if name in {"kamailio", "sipp", "redis-server"}]


def test_a_fat_tree_carries_a_light_load(engine: MininetEngine, tmp_path: Path) -> None:
    spec = spec_of("sip:80:registrations=40:scale=20:arrivals=constant", 6.0)
    spec = dataclasses.replace(spec, topology=TopologySpec("fat_tree", {"k": 4}))
    result = run_once(engine, spec, tmp_path)
    with exact():
        assert programs() == [] and not Path("/tmp/ims").exists()
        calls = result.samples["calls"]
        assert 80 <= calls["offered"].sum() <= 97
        assert calls["completed"].sum() > 0 and calls["registered"].sum() > 0
        assert result.metrics["pcscf_drops_per_s"] == result.metrics["scscf_drops_per_s"] == 0
        assert result.metrics["early_setup_pct"] <= 101
        assert result.provenance["scheduling"] == "SCHED_RR 1"
    assert result.metrics["calls_failed_per_s"] == 0
    assert result.metrics["measured_message_us"] == pytest.approx(2200, rel=0.1)
    assert result.metrics["measured_lookup_us"] == pytest.approx(90_000, rel=0.1)
    assert 90 < result.metrics["setup_ms_p50"] < 200


def test_the_controller_adds_what_is_overloaded(engine: MininetEngine, tmp_path: Path) -> None:
    spec = spec_of("sip:220:registrations=40:scale=20:arrivals=constant:policy=queue", 12.0)
    result = run_once(engine, spec, tmp_path)
    steps = [(role, step) for _, role, step in result.provenance["steps"]]
    assert ("scscf", "add") in steps
    assert result.metrics["scscf_most"] == 2
    late = result.samples["components"]
    last = late["t_s"] == late["t_s"].max()
    assert {"s1", "s2"} <= set(late["name"][last].tolist())


def test_users_give_up_after_their_patience_and_buffers_have_their_size(
    engine: MininetEngine, tmp_path: Path
) -> None:
    """Too much load for the S-CSCF, and no controller. SIPp's clock has steps of 4 ms."""
    late = "sip:150:registrations=0:lookup_us=60000:patience_ms=1000:buffer=50"
    spec = spec_of(f"{late}:scale=20:arrivals=constant", 8.0)
    result = run_once(engine, dataclasses.replace(spec, seed=3), tmp_path)
    with exact():
        assert set(result.samples["components"]["name"].tolist()) == {"p1", "s1"}
        assert result.provenance["steps"] == []
        assert result.metrics["setup_ms_p99"] <= 1010
        assert result.metrics["calls_failed_per_s"] > 0
        waiting = result.samples["components"]["waiting"].astype(float)
        assert 25 < waiting.max() <= 51
    assert result.metrics["scscf_onset_s"] > 0


def test_a_drained_instance_ends_when_its_calls_have(engine: MininetEngine, tmp_path: Path) -> None:
    """Two of each are too many from the start, so one is drained after 20 s; no call may be lost by it.

    It ends 5 s later than its calls, because Kamailio remembers their transactions for so long.
    """
    spec = spec_of("sip:30:registrations=10:scale=20:arrivals=constant:pcscf=2:scscf=2:policy=queue", 33.0)
    result = run_once(engine, dataclasses.replace(spec, seed=4), tmp_path)
    with exact():
        assert {(role, step) for _, role, step in result.provenance["steps"]} == {
            ("pcscf", "drain"),
            ("scscf", "drain"),
        }
        late = result.samples["components"]
        assert set(late["name"][late["t_s"] == late["t_s"].max()].tolist()) == {"p1", "s1"}
        assert result.metrics["calls_failed_per_s"] == 0
