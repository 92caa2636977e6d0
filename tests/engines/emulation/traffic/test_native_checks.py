"""What the native flow driver refuses before it opens anything."""

from __future__ import annotations

import os
import resource
from dataclasses import replace

import numpy as np
import pytest

from common.errors import HostUnfitError, RunError, UsageError
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.traffic.native import NativeDriver, _tables
from fabric._core import FlowDriver, TrafficFlow
from model.flows import PlannedFlow

FLOW = PlannedFlow(3, "a", "b", "10.0.0.1", "10.0.0.2", 5201, 1100)
HOSTS = {name: HostRef(name, os.getpid()) for name in ("a", "b")}


def driver(*flows: PlannedFlow, hosts: dict[str, HostRef] = HOSTS) -> NativeDriver:
    return NativeDriver(flows, hosts)


@pytest.mark.parametrize(
    ("flow", "error"),
    [
        (replace(FLOW, dst="c"), r"flow 3 \(a 10.0.0.1:1100 -> c 10.0.0.2:5201\): host c does not exist"),
        (replace(FLOW, size_bytes=-1), "negative"),
        (replace(FLOW, start_s=-0.1), "negative"),
        (replace(FLOW, start_s=float("nan")), "negative"),
        (replace(FLOW, start_s=float("inf")), "negative"),
        (replace(FLOW, cport=0), "two ports"),
    ],
)
def test_an_impossible_flow_is_refused(flow: PlannedFlow, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        driver(flow)


def test_two_flows_with_one_five_tuple() -> None:
    with pytest.raises(UsageError, match=r"two flows from 10.0.0.1:1100 to 10.0.0.2:5201"):
        driver(FLOW, replace(FLOW, flow=4))


def test_flows_may_share_a_listener() -> None:
    driver(FLOW, replace(FLOW, flow=4, cport=1101))


def test_flows_that_share_a_listener_share_its_transport() -> None:
    with pytest.raises(UsageError, match=r"flows to 10.0.0.2:5201 share a listener but not a transport"):
        driver(FLOW, replace(FLOW, flow=4, cport=1101, subflows=2))


def test_followers_that_need_more_open_files_than_allowed_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flows = [replace(FLOW, flow=n, cport=1100 + n, after=None if n == 0 else 0) for n in range(100)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    with pytest.raises(HostUnfitError, match=r"need \d+ open files in one process, and the limit is 256"):
        driver(*flows)
    driver(*(replace(flow, after=None) for flow in flows))


def test_stages_come_in_order() -> None:
    with driver(FLOW) as flows:
        with pytest.raises(RunError, match="release follows connect"):
            flows.release()
        with pytest.raises(RunError, match="connect follows open"):
            flows.connect(1)
        assert flows.received() == [0]
        flows.check()
        assert [(d.flow, d.received_bytes, d.error) for d in flows.stop()] == [(3, 0, "")]


def test_a_host_that_is_gone() -> None:
    missing = {**HOSTS, "a": HostRef("a", 2**22 + 1)}  # above any pid
    with driver(FLOW, hosts=missing) as flows, pytest.raises(RunError, match=r"opening /proc/4194305/ns/net"):
        flows.open()


def test_readings_have_one_entry_per_flow() -> None:
    core = FlowDriver(
        [
            TrafficFlow(
                src_host=0,
                src_ip=1,
                src_port=1100,
                dst_host=1,
                dst_ip=2,
                dst_port=5201,
                size_bytes=0,
                start_s=0.0,
                cc="reno",
            ),
            TrafficFlow(
                src_host=1,
                src_ip=2,
                src_port=1100,
                dst_host=0,
                dst_ip=1,
                dst_port=5201,
                size_bytes=9,
                start_s=0.5,
                mptcp=True,
                dscp=46,
            ),
        ],
        [1, 1],
    )
    readings = core.readings()
    assert {len(readings[name]) for name in ("state", "received_bytes", "errno")} == {2}
    for name in ("ready_s", "started_s", "completed_s"):
        assert np.isnan(readings[name]).all()
    with pytest.raises(IndexError):
        core.describe_failure(2)


@pytest.mark.parametrize(
    ("flows", "words"),
    [
        ([replace(FLOW, after=0)], "waits for one that comes later"),
        ([FLOW, replace(FLOW, cport=FLOW.cport + 1, after=0)], "waits for one without end"),
    ],
)
def test_a_flow_waits_for_one_before_it_that_ends(flows: list[PlannedFlow], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        NativeDriver(flows, HOSTS)


@pytest.mark.parametrize("hard", [16, 256, 1024, 20_000, 2**20, resource.RLIM_INFINITY])
@pytest.mark.parametrize("flows", [0, 1, 127, 16_256])
def test_tables_hold_all_flows(flows: int, hard: int) -> None:
    loops, fds = _tables(flows, hard)
    assert loops * (fds - 64) >= 3 * flows
    assert loops == 1 or fds <= max(hard, 128)
    assert loops == 1 or hard < 2**20
