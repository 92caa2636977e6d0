"""A real IMS before it starts, and its verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import topos
from common.errors import HostUnfitError, UsageError
from engines.emulation.hosts.processes import Process
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.programs import contention
from engines.ims import real
from engines.ims.calls import Calls, ImsReading, Instance, Measurement
from engines.ims.programs import LoadGenerator
from fabric.plan import PS_PER_US
from model.links import downlink, uplink
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from workloads import matrices, sip

REAL = "sip:65:scale=50:arrivals=constant"
DATE = "2026-11-23\t17:09:35.395419\t1795453775.395419"
STATISTICS = f"""CurrentTime;TotalCallCreated;SuccessfulCall(C);FailedCall(C);Retransmissions(C);
{DATE};40;38;0;0;
{DATE};80;77;1;3;
{DATE};95;"""
"""SIPp's -trace_stat, shortened to the columns that are read, with a last line that is not whole yet."""


def spec_of(workload: str = REAL, **link: float) -> RunSpec:
    name, params = matrices.parse(workload)
    return RunSpec(
        link=LinkSpec(100.0, **{"delay_us": 50.0, **link}),  # type: ignore[arg-type]
        topology=TopologySpec("star", {"n": 6}),
        transport=TransportSpec(1),
        workload=WorkloadSpec(name, params),
        warmup_s=0.0,
        seconds=10.0,
    )


def generator(folder: Path) -> LoadGenerator:
    process = Process(HostRef("h", 1), (), folder / "out", folder / "err", {}, pid=1)
    return LoadGenerator("uac", process, folder / "s.csv", 1, folder / "t.csv", began_s=100.0)


def test_counts_are_those_of_the_last_whole_line(tmp_path: Path) -> None:
    users = generator(tmp_path)
    assert users.counts() == Calls()
    users.statistics.write_text(STATISTICS.splitlines()[0] + "\n")
    assert users.counts() == Calls()
    users.statistics.write_text(STATISTICS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: 1795453775.5)
        found = users.counts()
    assert dataclasses.replace(found, age_s=0.0) == Calls(80, 77, 1, retransmitted=3)
    assert found.age_s == pytest.approx(0.105, abs=0.001)


def test_setup_times_are_read_once_and_only_of_the_first_timer(tmp_path: Path) -> None:
    users = generator(tmp_path)
    assert users.new_times() == []
    users.times.write_text("Date_ms;response_time_ms;rtd_no\n76.001;48;1\n5992;64;1\n6000;16;2\n60")
    assert users.new_times() == [(pytest.approx(100.076, abs=1e-5), 48.0), (105.992, 64.0)]
    with users.times.open("a") as file:
        file.write("04;52;1\n")
    assert users.new_times() == [(106.004, 52.0)]


def test_a_look_up_takes_the_links_there_and_back() -> None:
    spec = spec_of()
    topology = topos.build("star", {"n": 6})
    plan = real.plan_of(spec, topology)
    links = [topology.nics_of(topology.index(name))[0].link for name in ("s1h4", "s1h1")]
    there = plan.delay_ps[uplink(links[0])] + plan.delay_ps[downlink(links[1])]
    back = plan.delay_ps[uplink(links[1])] + plan.delay_ps[downlink(links[0])]
    assert there + back == 36_000 * PS_PER_US
    assert plan.delay_ps[uplink(links[0])] == 50 * PS_PER_US


IDLE = {"cpu_busy_pct": 50.0, "waited_pct": 0.5, "paused_pct": 0.0}
BUSY = {**IDLE, "cpu_busy_pct": 99.0}
ASKED_US = {"message": 880.0, "scscf": 200.0, "lookup": 36_000.0}


def readings(served: float = 1.0, fill: float = 0.9, per_s: int = 65) -> list[ImsReading]:
    """Return five seconds of a P-CSCF that serves this share of what its service time allows."""

    def instance(t_s: int) -> Instance:
        return Instance("pcscf", 1, 100, fill, 0, 0.1 * t_s, served * t_s, 1, 0, True)

    return [ImsReading(float(t), Calls(offered=per_s * t), (instance(t),)) for t in range(6)]


def doubts(
    found: Measurement,
    events: bool = False,
    **times_us: float,
) -> list[str]:
    settings = sip.settings(spec_of("sip:130:scale=50:arrivals=constant").workload.params)
    reasons = real.doubts(settings, {**ASKED_US, **times_us}, found, events)
    return [reason.text for reason in reasons]


@pytest.mark.parametrize(
    ("found", "others", "words"),
    [
        ({}, {}, ""),
        ({}, {"lookup": 45_000.0}, "lookup is +25 % off"),
        ({"served": 0.93}, {}, "a full P-CSCF served 93 % of what its service times give"),
        ({"served": 0.97}, {}, ""),
        ({"served": 0.93}, {"events": True}, ""),
        ({"served": 0.1, "fill": 0.1}, {}, ""),
        ({"per_s": 60}, {}, "users called -8 % off the requested rate"),
        ({"per_s": 64}, {}, ""),
    ],
)
def test_doubts_name_what_the_servers_did(found: dict[str, Any], others: dict[str, Any], words: str) -> None:
    doubted = doubts(Measurement(readings(**found)), **others)
    assert len(doubted) == bool(words)
    assert words in "".join(doubted)


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (IDLE, ""),
        ({**IDLE, "paused_pct": 5.0}, "paused for 5 %"),
        (BUSY, ""),
        ({**BUSY, "waited_pct": 2.5}, "a program waited for 2.5 % of the time"),
    ],
)
def test_contention_names_what_the_machine_did(machine: Mapping[str, float], words: str) -> None:
    found = contention(machine)
    assert len(found) == bool(words)
    assert words in "".join(reason.text for reason in found)


def test_knees_of_measured_times_are_in_published_units() -> None:
    settings = sip.settings(spec_of().workload.params)
    knees = real._knees(settings, ASKED_US)
    assert knees["pcscf_knee_per_s"] == pytest.approx(settings.pcscf_knee(1))
    assert knees["scscf_knee_per_s"] == pytest.approx(settings.scscf_knee(1))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (spec_of("sip:65"), "constant intervals"),
        (spec_of(f"{REAL}:lookup_us=90"), "longer than a look-up"),
        (dataclasses.replace(spec_of(), dataplane="ovs"), "--dataplane fabric"),
    ],
)
def test_what_real_programs_cannot_do_is_refused(spec: RunSpec, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        real.check(spec)


def test_missing_programs_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "KAMAILIO", "/nowhere/kamailio")
    with pytest.raises(HostUnfitError, match=r"needs kamailio.*setup/install.sh --ims"):
        real.check_installed()


def test_a_missing_module_of_kamailio_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(real, "LIBRARIES", tmp_path)
    assert "kamailio's ndb_redis.so" in real.missing()
