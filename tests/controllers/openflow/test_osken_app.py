"""The controller's process on real sockets: what it prints, what ends it, and its control socket."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from common.errors import RefabricError, UsageError
from controllers.openflow.config import ControllerConfig, Mode
from controllers.openflow.control import ControlClient
from controllers.openflow.osken_app import UNFIT
from controllers.scheduler import FlowCount, PortCount
from tests.controllers.openflow.fake_switches import frame, tcp
from tests.controllers.openflow.wire_switch import FLOW_MOD, WireSwitch
from topos import build
from topos.topology import SwitchPorts

ROOT = Path(__file__).parents[3]
LS = build("ls", {"leaves": 2, "spines": 2, "hosts": 2})
DPIDS = {LS.dpid(switch): range(1, len(links) + 1) for switch, links in SwitchPorts(LS).links.items()}
FIRST = min(DPIDS)


class Process:
    """A controller of the small leaf-spine network, its sockets in a folder of its own."""

    def __init__(self, folder: Path, mode: Mode = Mode.REACTIVE, connect_s: float = 20.0) -> None:
        self.listen, self.control = folder / "of", folder / "control"
        config = ControllerConfig(
            LS.kind, dict(LS.params), mode=mode, listen=f"unix:{self.listen}", control=str(self.control),
            connect_s=connect_s,
        )  # fmt: skip
        (folder / "c.json").write_text(config.to_json())
        self.process = subprocess.Popen(
            [sys.executable, "-m", "controllers.openflow.osken_app", str(folder / "c.json")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip
        self.switches: list[WireSwitch] = []

    def said(self) -> dict[str, object]:
        assert self.process.stdout is not None
        event: dict[str, object] = json.loads(self.process.stdout.readline())
        return event

    def connect(self, dpid: int, ports: Sequence[int], **options: int) -> WireSwitch:
        switch = WireSwitch(self.listen, dpid, ports, **options)  # type: ignore[arg-type]
        self.switches.append(switch)
        return switch

    def connect_all(self) -> dict[int, WireSwitch]:
        assert self.said() == {"event": "ready", "listen": f"unix:{self.listen}"}
        switches = {dpid: self.connect(dpid, ports) for dpid, ports in DPIDS.items()}
        programmed = self.said()
        assert (programmed["event"], programmed["switches"]) == ("programmed", 4)
        return switches

    def last_line(self) -> str:
        """Wait until the process ends by itself, and return its last line of stderr."""
        _, errors = self.process.communicate(timeout=20)
        assert self.process.returncode == UNFIT
        return errors.strip().splitlines()[-1]

    def close(self) -> None:
        for switch in self.switches:
            switch.close()
        self.process.kill()
        self.process.communicate(timeout=20)


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path)
    yield process
    process.close()


def _until(condition: object, what: str) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)


def test_it_reports_when_it_listens_and_when_all_is_programmed_and_ends_on_term(controller: Process) -> None:
    switches = controller.connect_all()
    assert all(len(switch.flow_mods) == 3 for switch in switches.values())  # clear, ARP, IP
    controller.process.send_signal(signal.SIGTERM)
    assert controller.process.wait(20) == 0


def test_a_flow_is_set_up_seen_and_moved(controller: Process) -> None:
    switches = controller.connect_all()
    flow = tcp(LS.nics[0].ip, LS.nics[-1].ip)
    entry = switches[LS.dpid(LS.nics[0].switch)]
    entry.packet_in(1, frame(flow))
    client = ControlClient(controller.control)
    _until(client.flows, "the flow is set up")
    [seen] = client.flows()
    assert isinstance(seen, FlowCount) and seen.flow == flow and len(seen.path) == 5
    assert client.counts()["flows_set_up"] == 1
    spines = [LS.nodes[s].name for s in LS.switches if LS.nodes[s].name not in (seen.path[1], seen.path[3])]
    other = next(name for name in spines if name != seen.path[2])
    client.set_path(flow, [*seen.path[:2], other, *seen.path[3:]])
    _until(lambda: client.flows()[0].path[2] == other, "the flow is moved")
    client.clear_path(flow)
    _until(lambda: client.flows()[0].path == seen.path, "the flow is back")
    with pytest.raises(UsageError, match="must begin"):
        client.set_path(flow, seen.path[1:])
    counts = client.ports()
    assert len(counts) == sum(map(len, DPIDS.values()))
    assert all(isinstance(each, PortCount) and each.octets > 0 for each in counts)
    client.close()


def test_a_switch_that_comes_back_is_programmed_again(controller: Process) -> None:
    switches = controller.connect_all()
    first = next(iter(DPIDS))
    switches[first].close()
    controller.switches.remove(switches[first])
    again = controller.connect(first, DPIDS[first])
    _until(lambda: again.seen.count(FLOW_MOD) == 3, "it has its rules again")


@pytest.mark.parametrize(
    ("number", "ports", "options", "complaint"),
    [
        (99, [1], {}, "no switch with datapath id 0x63"),
        (FIRST, range(1, 10), {}, "has a port 5, but only 4 links"),
        (FIRST, DPIDS[FIRST], {"versions": 1 << 1}, "offers OpenFlow 1.0, but this mode needs 1.3"),
        (FIRST, DPIDS[FIRST], {"refuse": True}, "rejected a message: OFPET_FLOW_MOD_FAILED"),
    ],
)
def test_a_wrong_switch_ends_it_with_one_line(
    controller: Process, number: int, ports: Sequence[int], options: dict[str, int], complaint: str
) -> None:
    controller.said()
    controller.connect(number, ports, **options)
    assert complaint in controller.last_line()


def test_two_switches_of_one_number_end_it(controller: Process) -> None:
    switches = controller.connect_all()
    number = next(iter(switches))
    controller.connect(number, DPIDS[number])
    assert f"two switches connected with the datapath id {number:#x}" in controller.last_line()


def test_switches_that_stay_away_end_it(tmp_path: Path) -> None:
    controller = Process(tmp_path, connect_s=1.0)
    try:
        controller.said()
        for number, ports in list(DPIDS.items())[:2]:
            controller.connect(number, list(ports)[:-1])
        line = controller.last_line()
        assert "not all switches are ready after 1 s" in line
        assert "lacks port 4" in line and "2 did not connect" in line
    finally:
        controller.close()


def test_requests_to_an_ended_controller_fail(controller: Process) -> None:
    controller.connect_all()
    client = ControlClient(controller.control)
    controller.process.kill()
    controller.process.wait(20)
    with pytest.raises(RefabricError, match=r"has ended|sending a request"):
        client.flows()
    client.close()
    with pytest.raises(RefabricError, match="connecting to the controller"):
        ControlClient(controller.control)


def test_a_bad_configuration_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"topology": "fat_tree", "params": {"k": 3}}')
    done = subprocess.run(
        [sys.executable, "-m", "controllers.openflow.osken_app", str(tmp_path / "c.json")],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "k must be an even number" in done.stderr and "Traceback" not in done.stderr
