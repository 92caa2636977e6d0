"""Data planes before they start: tuning, CPUs, what Open vSwitch is asked for, its controller's process."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import topos
from common.errors import DeadlineError, RunError, UsageError
from engines.emulation.dataplanes.dataplane import DATAPLANES, cpu_mask
from engines.emulation.dataplanes.fabric_dataplane import default_tuning
from engines.emulation.dataplanes.ovs.controller import ControllerProcess
from engines.emulation.dataplanes.ovs.daemons import Bridge, configuration, listens
from engines.emulation.dataplanes.ovs.wires import bridge_ports
from engines.emulation.kernel.shaping import Shape, htb_class, leaf, nic_shape, switch_shape
from engines.emulation.sandbox.inside import NOBODY
from experiments.cs244_2013 import CS244_ONE_TO_ONE
from fabric.plan import FRAME_BITS
from harness.options.options import resolve
from model.spec import (
    CONTROLLERS,
    ELASTIC,
    PORT,
    QDISC,
    STRICT,
    VIRTUAL,
    LinkSpec,
    OpenFlowSpec,
    RunSpec,
)
from tests.support.options import options_typed

LONGEST_CLOCK_SLEEP_US = 1000.0
"""The core sleeps on its socket from here on (kWorthPolling), and each frame would wake it up."""


@pytest.mark.parametrize("rate_mbps", [0.5, 1.0, 2.0, 5.0, 10.0, 40.0])
@pytest.mark.parametrize("clock", [ELASTIC, STRICT])
def test_a_packet_takes_at_least_eight_quanta(rate_mbps: float, clock: str) -> None:
    quantum_us = default_tuning(rate_mbps, clock).quantum_us
    assert quantum_us <= FRAME_BITS / rate_mbps / 8
    assert quantum_us < LONGEST_CLOCK_SLEEP_US


def test_slow_links_let_the_core_sleep_longer_but_results_of_guests_keep_their_quantum() -> None:
    assert default_tuning(2.0).quantum_us == 750.0
    assert default_tuning(10.0).quantum_us == FRAME_BITS / 10 / 8
    assert {default_tuning(rate, VIRTUAL).quantum_us for rate in (1.0, 2.0, 5.0, 10.0)} == {150.0}


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [
        ([0], "1"),
        ([0, 2], "5"),
        (range(32), "ffffffff"),
        ([32], "1,00000000"),
        ([1, 40, 95], "80000000,00000100,00000002"),
    ],
)
def test_the_kernel_takes_at_most_32_cpus_between_commas(cpus: list[int], mask: str) -> None:
    assert cpu_mask(cpus) == mask


_TICK_NS = 64
_FRAME_BYTES = 1514


@pytest.mark.parametrize("rate_bps", [1_000_000, 10_000_000, 100_000_000, 40_000_000_000])
def test_a_class_has_the_links_rate_and_a_burst_of_two_frames_or_two_ms(rate_bps: int) -> None:
    options = htb_class(rate_bps)
    length, kind = struct.unpack_from("=HH", options)
    assert (length, kind) == (4 + 44, 1)
    rate, ceil, ticks, ceil_ticks = struct.unpack_from("=8xI8xIII", options, 4)
    assert rate == ceil == min(rate_bps // 8, 0xFFFFFFFF)
    burst_bytes = ticks * _TICK_NS * rate_bps / 8e9
    assert ticks == ceil_ticks
    assert burst_bytes == pytest.approx(max(2 * _FRAME_BYTES, 0.002 * rate_bps / 8), rel=0.01)
    (exact,) = struct.unpack_from("=Q", options, 4 + 44 + 4)
    assert exact == rate_bps // 8


def test_a_leaf_holds_all_of_the_queue_but_what_is_on_the_wire() -> None:
    assert leaf(Shape(10**7, 100)) == ("pfifo", struct.pack("=I", 99))
    assert leaf(Shape(10**7, 1)) == ("pfifo", struct.pack("=I", 1)), "0 would drop everything"
    assert leaf(Shape(10**7, 0))[1] == struct.pack("=I", 1 << 20), "0 is unbounded"
    assert leaf(Shape(10**7, 0, queue_bytes=100_000)) == ("bfifo", struct.pack("=I", 100_000 - 1514))
    kind, options = leaf(Shape(12_112_000, 100, delay_us=5000.0))
    latency, limit = struct.unpack_from("=II", options)
    assert (kind, latency * _TICK_NS, limit) == ("netem", 5_000_000, 99 + 5)


def test_hosts_have_their_own_queue_and_fast_links_their_speed() -> None:
    link = LinkSpec(10.0, queue_pkts=50, nic_queue_pkts=200)
    assert switch_shape(link, 4) == Shape(40_000_000, 50)
    assert nic_shape(link, 1) == Shape(10_000_000, 200)
    assert switch_shape(dataclasses.replace(link, queue_bytes=9000), 1).queue_pkts == 0


def test_one_transaction_makes_every_bridge_and_port_once() -> None:
    topology = topos.build("fat_tree", {"k": 4})
    ports = bridge_ports(topology)
    bridges = [Bridge(topology.nodes[s].name, s + 1, at) for s, at in ports.items()]
    rows = configuration(bridges, "netdev", "tcp:127.0.0.1:6653", {"max-idle": "1"})
    made = {table: [r["row"] for r in rows if r["table"] == table] for table in {r["table"] for r in rows}}
    interfaces = [(row["name"], row["ofport_request"]) for row in made["Interface"]]
    assert len(set(interfaces)) == len(interfaces) == 2 * len(topology.links) - len(topology.hosts)
    assert interfaces[:2] == [("p0e0-eth1", 1), ("p0e0-eth2", 2)]
    assert len(made["Bridge"]) == len(made["Controller"]) == len(topology.switches)
    ids = {row["name"]: dict(row["other_config"][1])["datapath-id"] for row in made["Bridge"]}
    assert ids["p0e0"] == f"{topology.index('p0e0') + 1:016x}"
    assert {row["fail_mode"] for row in made["Bridge"]} == {"secure"}
    assert made["QoS"] == [{"type": "linux-noop"}], "Open vSwitch would clear the links' queues"
    assert all(row["qos"] == ["named-uuid", "q"] for row in made["Port"])
    assert all("controller" not in r["row"] for r in configuration(bridges, "system", "", {}))


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"routing": "scatter"}, "OpenFlow has no routing 'scatter'"),
        ({"routing": "ksp:8", "openflow": OpenFlowSpec(mode="proactive")}, "choose --mode reactive"),
        ({"link": LinkSpec(5.0, loss=0.01)}, "random loss .* choose --dataplane fabric"),
        ({"link": LinkSpec(5.0, ecn_pkts=20)}, "ECN threshold .* choose --dataplane fabric"),
        ({"link": LinkSpec(5.0, random_pkts=20)}, "random drop .* choose --dataplane fabric"),
    ],
)
def test_what_openflow_cannot_carry_is_refused_with_what_to_choose(
    asked: dict[str, Any], complaint: str
) -> None:
    topology = topos.build("fat_tree", {"k": 4})
    spec = RunSpec(**{"link": LinkSpec(5.0), "dataplane": "ovs", **asked})
    with pytest.raises(UsageError, match=complaint):
        DATAPLANES["ovs"].check(spec, topology)


DEFAULTS = CS244_ONE_TO_ONE.figures[0].defaults
ON_OVS = {"dataplane": "ovs", "rate": "1"}


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"mode": "proactive"}, "--mode proactive: only Open vSwitch has one: add --dataplane ovs"),
        ({**ON_OVS, "controller": "ryu"}, f"choose from: {', '.join(CONTROLLERS)}"),
        ({"dataplane": "ovs"}, "--dataplane ovs: --rate auto is what the fabric carries here"),
        ({**ON_OVS, "host_queue": PORT}, "--host-queue port is the fabric's: leave it out"),
        ({"engine": "simulator", "host_queue": QDISC}, "simulated hosts have no kernel"),
    ],
)
def test_options_that_contradict_each_other_are_refused(asked: dict[str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        resolve(options_typed(**asked), DEFAULTS)


def test_openflow_and_hosts_queues_follow_the_data_plane() -> None:
    """Hosts' queues are the fabric's unless asked, and the kernel's under Open vSwitch."""
    chosen = resolve(options_typed(**ON_OVS, mode="proactive"), DEFAULTS).base
    assert (chosen.dataplane, chosen.openflow) == ("ovs", OpenFlowSpec(mode="proactive"))
    assert chosen.link.host_queue == QDISC
    usual = resolve({}, DEFAULTS).base
    assert (usual.openflow, usual.link.host_queue) == (OpenFlowSpec(), PORT)
    assert resolve(options_typed(host_queue=QDISC), DEFAULTS).base.link.host_queue == QDISC


def test_a_socket_that_is_bound_and_does_not_listen_yet_is_not_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "db.sock"
    assert not listens(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert path.is_socket()
        assert not listens(path)
        server.listen()
        assert listens(path)


def test_the_error_says_why_the_database_does_not_answer(tmp_path: Path) -> None:
    beside = tmp_path / "file"
    beside.touch()
    with pytest.raises(RunError, match="Not a directory"):
        listens(beside / "db.sock")


READS = "import json, sys, time; config = json.load(open(sys.argv[1])); "
LISTENS = READS + "print(json.dumps({'event': 'ready'}), flush=True); "
PROGRAMS = LISTENS + "print(json.dumps({'switches': config['switches']}), flush=True); "
WAITS = "time.sleep(60)"
DIES = "sys.exit('no room for rule 7')"


Start = Callable[[str], ControllerProcess]


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Start]:
    """Return a function that makes the process of a controller's program, which ends with the test."""
    with contextlib.ExitStack() as made:

        def make(program: str) -> ControllerProcess:
            argv = [sys.executable, "-c", program]
            one = ControllerProcess(argv, {"switches": 20}, tmp_path, tmp_path / "log", NOBODY)
            made.callback(one.stop)
            return one

        yield make


def test_it_is_configured_and_reports_when_all_is_programmed(controller: Start) -> None:
    one = controller(PROGRAMS + WAITS)
    one.start()
    assert one.wait_ready(20.0) == {"switches": 20}
    one.check()
    one.stop()
    one.check()


@pytest.mark.parametrize(
    ("program", "error"),
    [
        (READS + DIES, "exited with 1: .*no room for rule 7"),
        ("nonsense", "exited with 1: .*NameError"),
        ("print('hello', flush=True); import time; " + WAITS, "'hello' is not a JSON object"),
    ],
)
def test_the_error_of_one_that_does_not_listen_has_its_last_words(
    program: str, error: str, controller: Start
) -> None:
    with pytest.raises(RunError, match=error):
        controller(program).start()


def test_one_that_dies_later_is_reported_at_the_next_check(controller: Start) -> None:
    one = controller(PROGRAMS + DIES)
    one.start()
    one.wait_ready(20.0)
    end = time.monotonic() + 20
    with pytest.raises(RunError, match="no room for rule 7"):
        while time.monotonic() < end:
            one.check()
            time.sleep(0.01)


def test_one_that_programs_nothing_meets_the_deadline(controller: Start) -> None:
    one = controller(LISTENS + WAITS)
    one.start()
    with pytest.raises(DeadlineError, match=r"programmed within 0\.2 s"):
        one.wait_ready(0.2)
