"""Open vSwitch between real hosts: paths, rates, deaths and leftovers, at k=4 and smaller."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import topos
from common.errors import HostUnfitError
from controllers.groups import ecmp_groups
from controllers.hashing import FiveTuple
from controllers.routing import path
from engines.emulation.dataplanes.ovs.daemons import check_installed
from engines.emulation.engine import MininetEngine
from engines.emulation.sandbox.isolation import spawn_inside
from engines.engine import Silent
from model.result import RunResult
from model.spec import (
    QDISC,
    LinkEvent,
    LinkSpec,
    RunSpec,
    SamplingSpec,
    TopologySpec,
    TransportSpec,
    sub_seed,
)
from tests.live.test_engine_points import check_paths
from tests.support.machine_noise import exact, repeated

pytestmark = pytest.mark.emulation

ROOT = Path(__file__).resolve().parents[3]
ICMP = 1
RATE_MBPS = 1.0
"""What Open vSwitch's user-space datapath carries on two cores that others use too."""

QUEUE_PKTS = 50
"""A full queue lasts 0.6 s, so a flow that lost its last packet goes on within the window."""


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    try:
        check_installed()
    except HostUnfitError as error:
        pytest.skip(str(error))


def inside(case: str, request: object = None) -> dict[str, Any]:
    """Return all reports of a case, merged."""
    reports: dict[str, Any] = {}
    status = spawn_inside(
        f"tests.support.scenarios.ovs:{case}", request, deadline_s=90, on_report=reports.update
    )
    assert status == 0
    return reports


def spec(dataplane: str, subflows: int) -> RunSpec:
    return RunSpec(
        link=LinkSpec(RATE_MBPS, queue_pkts=QUEUE_PKTS, host_queue=QDISC),
        topology=TopologySpec("fat_tree", {"k": 4}),
        transport=TransportSpec(subflows),
        dataplane=dataplane,
        warmup_s=5.0,
        seconds=10.0,
        sampling=SamplingSpec(queues_ms=100),
    )


def run(wanted: RunSpec, raw: Path) -> RunResult:
    engine = MininetEngine()
    try:
        engine.check(wanted)
        return engine.run(wanted, Silent(), raw)
    finally:
        engine.close()


def test_a_five_tuple_takes_the_path_that_routing_says() -> None:
    """Seen in the rules of the switches: those on the path have one, used by every packet, and no others."""
    topology = topos.build("fat_tree", {"k": 4})
    names = [topology.nodes[host].name for host in topology.hosts]
    pairs = [(names[i], names[(5 * i + 7) % 16]) for i in range(8)]
    seen = inside("pinged_rules", pairs)
    assert seen["received"] and all(seen["received"])
    tables, seed = ecmp_groups(topology), sub_seed(1, "routing")
    for a, b in pairs:
        for src, dst in ((a, b), (b, a)):
            src_ip, dst_ip = (topology.nics_of(topology.index(name))[0].ip for name in (src, dst))
            nodes = path(topology, tables, "hashed", seed, FiveTuple(src_ip, dst_ip, ICMP, 0, 0))
            used = {switch: packets for switch, *ends, packets in seen["rules"] if ends == [src_ip, dst_ip]}
            assert set(used) == {topology.nodes[node].name for node in nodes[1:-1]}
            assert set(used.values()) <= {1, 2}, "the first is put out by the controller at its last switch"


@pytest.mark.physics
def test_both_data_planes_give_one_result(tmp_path: Path) -> None:
    """Same paths, and goodput alike at a rate that both carry, where hosts feel their own queue on both."""
    specs = [spec(plane, subflows=4) for plane in ("fabric", "ovs")]
    fabric, ovs = (repeated(functools.partial(run, wanted, tmp_path)) for wanted in specs)
    for result in (fabric, ovs):
        check_paths(specs[0], result)
        assert not any(port.drops for port in result.ports if port.layer == "host-edge")
    with exact():
        assert "late_p99_us" not in ovs.metrics
        assert sum(port.drops for port in ovs.ports) == ovs.metrics["drops"]
    assert all(0 <= port.utilisation_pct <= 101 for port in ovs.ports)
    assert all(port.max_queue_pkts <= 100 for port in ovs.ports)
    means = [fmean(flow.goodput_mbps for flow in result.flows) for result in (fabric, ovs)]
    assert 0.85 * means[0] <= means[1] <= 1.15 * means[0], (fabric.reasons, ovs.reasons)


def test_a_link_that_is_cut_carries_nothing(tmp_path: Path) -> None:
    """Between edge and aggregation, from the start: flows find the other way, and nothing goes over it."""
    link = LinkSpec(RATE_MBPS, queue_pkts=10)  # so that losses are soon retransmitted
    cut = (LinkEvent(0.5, "p0e0", "p0a0"),)
    wanted = dataclasses.replace(spec("ovs", 1), link=link, warmup_s=4.0, seconds=5.0, events=cut)
    result = run(wanted, tmp_path)
    over = [port for port in result.ports if {port.node, port.peer} == {"p0e0", "p0a0"}]
    assert [port.tx_packets for port in over] == [0, 0]
    (instead,) = (port for port in result.ports if (port.node, port.peer) == ("p0e0", "p0a1"))
    assert instead.tx_packets > 0


@pytest.mark.physics
def test_a_bottleneck_carries_its_rate_and_no_more() -> None:
    seen = inside("carried")
    assert 0.9 < seen["sent"] * 8 / (10e6 * 3) < 1.1


@pytest.mark.parametrize("who", ["controller", "ovs"])
def test_a_death_is_reported_with_its_last_words(who: str) -> None:
    message = inside("controller_dies", who)["message"]
    name = "OpenFlow controller" if who == "controller" else "ovs-vswitchd"
    assert f"{name} exited with -9" in message or f"{name} ended: " in message


@pytest.mark.parametrize("role", ["outer", "init"])
def test_nothing_is_left_of_a_killed_network(role: str) -> None:
    """Every process of the chain: tests/live/sandbox, without Open vSwitch."""
    seen = inside("kill_when_up", role)
    assert seen["left"] == []
    assert seen["status"] != 0


def test_a_student_watches_the_rules_appear() -> None:
    commands = "p0e0h0 ping -c1 -W5 10.3.1.3\nsh ovs-ofctl -O OpenFlow13 dump-flows p0e0\nexit\n"
    done = subprocess.run(
        [sys.executable, "-m", "experiments.command", "shell", "--dataplane", "ovs", "ft,4"],
        input=commands, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 received" in done.stdout
    assert "nw_src=10.0.0.2,nw_dst=10.3.1.3" in done.stdout
