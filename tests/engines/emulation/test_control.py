"""Threads beside a measurement: link events, a scheduler, responsive connections. Without hosts."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import topos
from common.errors import RunError, UsageError
from controllers.hashing import FiveTuple
from controllers.scheduler import Network
from engines.emulation.dataplanes.control import KernelConnections, LinkEvents, SchedulerClock, bytes_sent
from engines.emulation.dataplanes.ovs.dataplane import check as check_ovs
from engines.emulation.engine import MininetEngine
from engines.emulation.measure.socket_table import SocketTable
from engines.emulation.measure.verdict import judge
from engines.emulation.path_manager import PathManager
from model.flows import STRIDE, PlannedFlow, planned_flows
from model.reasons import texts
from model.schedulers import Driver
from model.spec import LinkEvent, LinkSpec, OpenFlowSpec, RunSpec, SchedulerSpec, TopologySpec, TransportSpec
from tests.engines.emulation.test_verdict import GOOD
from tests.support.waiting import until


class Written:
    def __init__(self) -> None:
        self.events: list[LinkEvent] = []
        self.failed = threading.Event()

    def set_share(self, event: LinkEvent) -> None:
        if event.a == "gone":
            self.failed.set()
            raise RunError("the fabric core stopped")
        self.events.append(event)


def test_what_is_due_happens_in_order_and_the_rest_does_not() -> None:
    links = Written()
    later, now = LinkEvent(0.05, "a", "b"), LinkEvent(0.0, "a", "b", 0.5)
    never = LinkEvent(60.0, "a", "b", 1.0)
    with LinkEvents([(event.t_s, partial(links.set_share, event)) for event in (never, later, now)]):
        until(lambda: len(links.events) == 2, 10.0)
    assert links.events == [now, later]


def test_an_event_that_fails_ends_the_block_with_its_error() -> None:
    links = Written()
    events = LinkEvents([(0.0, partial(links.set_share, LinkEvent(0.0, "gone", "b")))])
    with pytest.raises(RunError, match="core stopped"), events:
        assert links.failed.wait(10)


SPEC = RunSpec(
    LinkSpec(10.0),
    TopologySpec("fat_tree", {"k": 4}),
    TransportSpec(1),
    scheduler=SchedulerSpec("first_fit", 100),
)


class NoNetwork:
    """A network without flows, in which no path may be set."""

    def flows(self) -> list[Any]:
        return []

    ports = flows

    def clear_path(self, flow: FiveTuple) -> None:
        raise AssertionError(f"{flow} does not exist")

    def set_path(self, flow: FiveTuple, path: object) -> None:
        raise AssertionError(f"{flow} does not exist, nor does {path}")


class Patient:
    """Counts ticks; sets `enough` after `wanted` ticks. The first tick lasts until `slow` is set."""

    def __init__(self, wanted: int, slow: threading.Event | None = None) -> None:
        self.times: list[float] = []
        self.began = threading.Event()
        self.enough = threading.Event()
        self._wanted = wanted
        self._slow = slow

    def tick(self, network: Network, now_s: float) -> None:
        del network
        self.times.append(now_s)
        self.began.set()
        if self._slow is not None and len(self.times) == 1:
            self._slow.wait(10)
        if len(self.times) >= self._wanted:
            self.enough.set()


def test_it_looks_at_every_interval_until_the_block_ends() -> None:
    application = Patient(5)
    with SchedulerClock(Driver(application, NoNetwork()), 10.0) as clock:
        assert application.enough.wait(10)
    looked = len(application.times)
    assert application.times == sorted(application.times) and application.times[0] >= 0.01
    assert clock.metrics["scheduler_ticks"] == looked
    assert clock.metrics["scheduler_looks"] >= looked


def test_a_look_that_takes_too_long_costs_those_that_were_due_meanwhile() -> None:
    slow = threading.Event()
    application = Patient(2, slow)
    with SchedulerClock(Driver(application, NoNetwork()), 10.0) as clock:
        assert application.began.wait(10)
        threading.Timer(0.1, slow.set).start()
        assert application.enough.wait(10)
    assert clock.late >= 5 and clock.due >= clock.late
    assert clock.metrics["scheduler_ms_max"] > 50, "as long as the tick that had to wait"


@pytest.mark.parametrize("error", [RunError, KeyError], ids=["error", "bug"])
def test_what_a_tick_raises_ends_the_run(error: type[Exception]) -> None:
    """If only the thread ended, the measurement would silently go on without its scheduler."""

    class Broken:
        def tick(self, network: Network, now_s: float) -> None:
            raise error(f"{network} at {now_s}")

    with pytest.raises(error, match=r" at 0\."), SchedulerClock(Driver(Broken(), NoNetwork()), 1.0) as clock:
        clock._thread.join(10)


def test_flows_under_way_are_those_that_have_sent_something_and_not_all() -> None:
    """Flow 0 is endless, 1 has not begun, 2 has two subflows and has completed, 3 has not completed."""
    sizes = (0, 1000, 1000, 1000)
    flows = [
        PlannedFlow(i, "a", "b", "10.0.0.2", "10.1.0.2", 5201, 1100 + i, size) for i, size in enumerate(sizes)
    ]
    rows = [(0, 5001), (1, 1), (2, 601), (2, 401), (3, 301)]
    ours, theirs = (10 << 24) + 2, (10 << 24) + (1 << 16) + 2
    columns = {
        "flow": [flow for flow, _ in rows],
        "bytes_acked": [acked for _, acked in rows],
        "laddr": [ours] * 5,
        "raddr": [theirs] * 5,
        "lport": [1100, 1101, 1102, 2052, 1103],
        "rport": [5201] * 5,
    }
    seen = SimpleNamespace(**{name: np.array(column, np.int64) for name, column in columns.items()})
    read = bytes_sent(cast(SocketTable, SimpleNamespace(read=lambda: seen)), flows)
    assert read() == {
        FiveTuple("10.0.0.2", "10.1.0.2", 6, 1100, 5201): 5000,
        FiveTuple("10.0.0.2", "10.1.0.2", 6, 1103, 5201): 300,
    }


def test_a_scheduler_that_was_mostly_late_casts_doubt_on_a_run() -> None:
    reasons, _ = judge(dataclasses.replace(GOOD, looks=100, late_looks=51))
    assert texts(reasons) == "51 of the scheduler's 100 ticks were late or skipped"
    assert judge(dataclasses.replace(GOOD, looks=100, late_looks=50)) == ((), ())


def test_real_hosts_have_no_ideal_scheduler() -> None:
    with pytest.raises(UsageError, match="give an interval"):
        MininetEngine().check(dataclasses.replace(SPEC, scheduler=SchedulerSpec("first_fit")))


@pytest.mark.parametrize(
    ("openflow", "why"),
    [
        (OpenFlowSpec(controller="pox"), "choose --controller osken"),
        (OpenFlowSpec(mode="proactive"), "choose --mode reactive or hybrid"),
    ],
)
def test_on_open_vswitch_it_needs_rules_that_tell_flows_apart(openflow: OpenFlowSpec, why: str) -> None:
    topology = topos.build("fat_tree", {"k": 4})
    spec = dataclasses.replace(SPEC, dataplane="ovs", openflow=openflow)
    with pytest.raises(UsageError, match=why):
        check_ovs(spec, topology)
    check_ovs(dataclasses.replace(spec, openflow=OpenFlowSpec()), topology)


FLOWS_SPEC = RunSpec(LinkSpec(10.0), topology=TopologySpec("fat_tree", {"k": 4}), transport=TransportSpec(3))
TREE = topos.build("fat_tree", {"k": 4})
FLOWS = planned_flows(FLOWS_SPEC, TREE)
PATH = ("a", "b", "c")


class Kernel:
    """Sockets by flow and local port, with the acknowledged payload of each, and the requests for them."""

    def __init__(self) -> None:
        self.acked: dict[tuple[int, int], int] = {}
        self.asked: list[tuple[Any, ...]] = []

    def read(self) -> SimpleNamespace:
        keys = list(self.acked)
        flow, lport = (np.array(column, np.int64) for column in zip(*keys, strict=True))
        return SimpleNamespace(flow=flow, lport=lport, bytes_acked=np.array([*self.acked.values()]) + 1)

    def open_subflow(self, client: tuple[str, int], number: int, lport: int | None = None) -> bool:
        self.asked.append(("open", client, number, lport))
        return True

    def close_subflow(self, client: tuple[str, int], number: int) -> bool:
        self.asked.append(("close", client, number))
        return True

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        self.asked.append(("path", flow.sport, tuple(path)))

    def clear_path(self, flow: FiveTuple) -> None:
        self.asked.append(("clear", flow.sport))


def connections(kernel: Kernel) -> KernelConnections:
    return KernelConnections(
        TREE, FLOWS, cast(SocketTable, kernel), cast(Any, kernel), cast(PathManager, kernel)
    )


def test_bytes_of_a_closed_subflow_stay_counted() -> None:
    kernel, first = Kernel(), FLOWS[0].cport
    network = connections(kernel)
    kernel.acked = {(0, first): 1000, (0, first + STRIDE): 500}
    assert list(network.connections().values()) == [1500]
    kernel.acked = {(0, first): 1200}
    assert list(network.connections().values()) == [1700]
    kernel.acked = {(0, first): 1200, (0, first + STRIDE + 17): 300}
    assert list(network.connections().values()) == [2000]


def test_a_subflow_gets_its_path_before_it_opens_and_another_port_each_time() -> None:
    kernel, flow = Kernel(), FLOWS[0]
    network = connections(kernel)
    kernel.acked = {(0, flow.cport): 1000}
    [seen] = network.connections()
    client = (flow.src_ip, flow.cport)
    usual = flow.cport + STRIDE
    for port in (usual, usual + 17, usual + 34):
        kernel.asked.clear()
        assert network.open_subflow(seen, 1, PATH)
        assert network.move_subflow(seen, 1, PATH[::-1])
        assert network.close_subflow(seen, 1)
        assert kernel.asked == [
            ("path", port, PATH),
            ("open", client, 1, port),
            ("path", port, PATH[::-1]),
            ("close", client, 1),
            ("clear", port),
        ]


def test_connections_that_are_not_there_are_left_alone() -> None:
    kernel = Kernel()
    network = connections(kernel)
    kernel.acked = {(0, FLOWS[0].cport): 1000}
    [seen] = network.connections()
    gone = dataclasses.replace(seen, sport=9)
    assert not network.open_subflow(gone, 1, PATH) and not network.move_subflow(gone, 0, PATH)
    assert not kernel.asked
