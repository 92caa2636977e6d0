"""The POX component: its command line, its decisions without POX, and with POX where POX_DIR names one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.errors import HostUnfitError, UsageError
from controllers.openflow.config import ControllerConfig, Mode
from controllers.openflow.riplpox import RiplPox, pox_dir, ripl_config
from controllers.rules import Routes
from tests.controllers.openflow.fake_switches import frame, tcp
from topos import build
from topos.topology import SwitchPorts

ROOT = Path(__file__).parents[3]
FT4 = build("ft", {"k": 4})
PORTS = SwitchPorts(FT4)
CONFIG = ControllerConfig("fat_tree", {"k": 4}, seed=5)
FLOW_MOD, BARRIER, PACKET_OUT = 14, 18, 13


class FakeConnection:
    """A connection like POX's, to a switch with ports 1.. and a local port."""

    def __init__(self, dpid: int, ports: int) -> None:
        self.dpid = dpid
        numbers = [*range(1, ports + 1), 0xFFFE]
        self.features = SimpleNamespace(ports=[self.port(number) for number in numbers])
        self.sent: list[bytes] = []
        self.gone = False
        self.options: list[tuple[int, ...]] = []
        self.sock = SimpleNamespace(setsockopt=lambda *option: self.options.append(option))

    @staticmethod
    def port(number: int, *, down: bool = False) -> SimpleNamespace:
        return SimpleNamespace(port_no=number, config=int(down and number < 0xFF00), state=0)

    def send(self, data: bytes) -> None:
        self.sent.append(data)

    def disconnect(self, msg: str = "") -> None:
        assert msg
        self.gone = True


class Lab:
    """The component with all switches connected; `confirm` answers its barriers."""

    def __init__(self, config: ControllerConfig = CONFIG) -> None:
        self.programmed = 0
        self.faults: list[str] = []
        self.component = RiplPox(config, self._count, self.faults.append)
        self.connections = {FT4.dpid(switch): FakeConnection(FT4.dpid(switch), 4) for switch in FT4.switches}
        for connection in self.connections.values():
            self.component._handle_ConnectionUp(SimpleNamespace(connection=connection))
        self.confirm()

    def confirm(self) -> None:
        """Answer all barriers, including those that the answers cause."""
        for connection in self.connections.values():
            sent, connection.sent = connection.sent, []
            for data in sent:
                if data[1] == BARRIER:
                    number = int.from_bytes(data[4:8], "big")
                    event = SimpleNamespace(connection=connection, xid=number)
                    self.component._handle_BarrierIn(event)

    def kinds(self, switch: int) -> list[int]:
        return [data[1] for data in self.connections[FT4.dpid(switch)].sent]

    def _count(self) -> None:
        self.programmed += 1


@pytest.mark.parametrize(
    ("routing", "policy"), [("hashed", "hashed"), ("random", "random"), ("st", "spanning-tree")]
)
@pytest.mark.parametrize("mode", list(Mode))
def test_ripl_poxs_command_line(routing: str, policy: str, mode: Mode) -> None:
    config = ripl_config("ft,4", routing, mode.value, "3")
    assert config == ControllerConfig("fat_tree", {"k": 4}, policy, 3, mode)
    lab = Lab(config)
    assert lab.programmed == 1 and not lab.faults
    at_once = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    assert all(connection.options == at_once for connection in lab.connections.values())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ft,4", "spread", "reactive", "0"), "choose one of hashed, random, st"),
        (("ft,4", "hashed", "eager", "0"), "choose one of reactive, proactive, hybrid"),
        (("ring,4", "hashed", "reactive", "0"), "unknown topology"),
        (("ft,4", "hashed", "reactive", "-1"), "the seed must be a number"),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: tuple[str, str, str, str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        ripl_config(*arguments)


def test_a_flow_is_set_up_from_the_far_end_and_its_packet_put_out() -> None:
    lab = Lab()
    nodes = Routes(FT4, "hashed", 5).path(tcp())
    entry = lab.connections[FT4.dpid(nodes[1])]
    event = SimpleNamespace(connection=entry, port=1, data=frame(tcp()))
    for connection in lab.connections.values():
        connection.sent.clear()
    lab.component._handle_PacketIn(event)
    assert [lab.kinds(switch) for switch in nodes[1:-1]] == [[]] + 4 * [[FLOW_MOD, BARRIER]]
    lab.confirm()
    assert lab.kinds(nodes[1]) == [FLOW_MOD, BARRIER, PACKET_OUT]
    assert entry.sent[-1].endswith(frame(tcp()))
    match = SimpleNamespace(nw_dst="10.3.1.3", nw_src="10.0.0.2", nw_proto=6, tp_src=40000, tp_dst=5001)
    removed = SimpleNamespace(connection=entry, ofp=SimpleNamespace(match=match, priority=200))
    assert tcp() in lab.component.controller.flows
    lab.component._handle_FlowRemoved(removed)
    assert not lab.component.controller.flows


def test_switches_that_do_not_fit_are_reported_and_disconnected() -> None:
    lab = Lab()
    first = FT4.dpid(FT4.switches[0])
    for number, ports, complaint in (
        (99, 4, "no switch"),
        (first, 3, "has ports"),
        (first, 4, "a second switch"),
    ):
        stranger = FakeConnection(number, ports)
        lab.component._handle_ConnectionUp(SimpleNamespace(connection=stranger))
        assert stranger.gone and complaint in lab.faults[-1]
        lab.component._handle_ConnectionDown(SimpleNamespace(connection=stranger))
    assert lab.component.controller.knows(first)
    lab.component._handle_ErrorIn(SimpleNamespace(connection=lab.connections[first], asString=lambda: "bad"))
    assert "rejected a message: bad" in lab.faults[-1]


def test_a_switch_that_comes_back_is_programmed_again_and_a_cut_link_is_seen() -> None:
    lab = Lab()
    number = FT4.dpid(FT4.index("p0e0"))
    lab.component._handle_ConnectionDown(SimpleNamespace(connection=lab.connections[number]))
    assert not lab.component.controller.knows(number)
    again = lab.connections[number] = FakeConnection(number, 4)
    lab.component._handle_ConnectionUp(SimpleNamespace(connection=again))
    assert [data[1] for data in again.sent] == 3 * [FLOW_MOD] + [BARRIER]
    ofp = SimpleNamespace(desc=FakeConnection.port(3, down=True))
    lab.component._handle_PortStatus(SimpleNamespace(connection=again, ofp=ofp, deleted=False))
    extra = SimpleNamespace(desc=FakeConnection.port(5))
    lab.component._handle_PortStatus(SimpleNamespace(connection=again, ofp=extra, deleted=False))
    assert "has no port 5" in lab.faults.pop()
    above = PORTS.neighbour(FT4.index("p0e0"), 3)
    paths = {lab.component.controller.routes.path(tcp(sport=sport))[2] for sport in range(2000, 2030)}
    assert above not in paths


def test_without_pox_one_line_says_how_to_get_it(tmp_path: Path) -> None:
    nowhere: list[dict[str, str]] = [{}, {"POX_DIR": str(tmp_path)}]
    for environment in nowhere:
        with pytest.raises(HostUnfitError, match=r"setup/install\.sh --pox"):
            pox_dir(environment, tmp_path / "none")
    (tmp_path / "pox").mkdir()
    (tmp_path / "pox" / "boot.py").touch()
    assert pox_dir({}, tmp_path) == pox_dir({"POX_DIR": str(tmp_path)}) == tmp_path
    done = subprocess.run(
        [sys.executable, "-m", "controllers.openflow.riplpox", "--topo=ft,4"],
        env={**os.environ, "POX_DIR": "/nowhere"}, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == HostUnfitError.exit_code
    assert len(done.stderr.splitlines()) == 1 and "POX was not found" in done.stderr


needs_pox = pytest.mark.skipif(not os.environ.get("POX_DIR"), reason="POX_DIR names no checkout of POX")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@needs_pox
def test_a_real_pox_greets_a_switch_and_refuses_one_it_does_not_know(tmp_path: Path) -> None:
    port = _free_port()
    config = ControllerConfig("star", {"n": 2}, listen=f"tcp:127.0.0.1:{port}", connect_s=20.0)
    (tmp_path / "c.json").write_text(config.to_json())
    with subprocess.Popen(
        [sys.executable, "-m", "controllers.openflow.pox_app", str(tmp_path / "c.json")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    ) as pox:  # fmt: skip
        assert pox.stdout is not None
        assert json.loads(pox.stdout.readline())["event"] == "ready"
        star = build("star", {"n": 2})
        with socket.create_connection(("127.0.0.1", port), 10) as switch:
            _be_a_switch(switch, FT4.dpid(star.switches[0]), 2)
            assert json.loads(pox.stdout.readline())["event"] == "programmed"
            with socket.create_connection(("127.0.0.1", port), 10) as stranger:
                _be_a_switch(stranger, 99, 2)
                _, errors = pox.communicate(timeout=20)
        assert pox.returncode == HostUnfitError.exit_code
        assert "no switch with datapath id 0x63" in errors.splitlines()[-1]


@needs_pox
def test_a_real_pox_ends_on_term_and_on_a_wrong_command_line() -> None:
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "controllers.openflow.riplpox",
        "--topo=ft,4",
        "openflow.of_01",
        f"--port={port}",
    ]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT
    ) as pox:
        assert pox.stderr is not None
        while "is up" not in pox.stderr.readline():
            assert pox.poll() is None
        pox.send_signal(signal.SIGTERM)
        assert pox.wait(20) == 0
    wrong = [*command[:4], "--routing=spread"]
    done = subprocess.run(wrong, capture_output=True, text=True, cwd=ROOT, timeout=20, check=False)
    assert "choose one of hashed, random, st" in done.stderr


@needs_pox
def test_poxs_own_command_line_finds_the_component() -> None:
    command = [sys.executable, "pox.py", "riplpox", "--topo=ft,4", "--routing=spread"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "controllers" / "pox_ext")}
    home = os.environ["POX_DIR"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=home, env=environment, timeout=20, check=False
    )
    assert "choose one of hashed, random, st" in done.stderr


def _be_a_switch(switch: socket.socket, number: int, ports: int) -> None:
    """Greet, report the ports and answer barriers, until what came with the second barrier is read."""
    switch.settimeout(5)
    switch.sendall(bytes([1, 0, 0, 8, 0, 0, 0, 0]))
    rows = b"".join(
        n.to_bytes(2, "big") + bytes(6) + b"p".ljust(16, b"\0") + bytes(24) for n in range(1, ports + 1)
    )
    barriers, data = 0, b""
    while barriers < 2:
        more = switch.recv(4096)
        if not more:
            return
        data += more
        while len(data) >= 8 and len(data) >= int.from_bytes(data[2:4], "big"):
            length = int.from_bytes(data[2:4], "big")
            kind, xid, data = data[1], data[4:8], data[length:]
            if kind == 5:
                body = number.to_bytes(8, "big") + bytes(16) + rows
                switch.sendall(bytes([1, 6]) + (8 + len(body)).to_bytes(2, "big") + xid + body)
            elif kind == BARRIER:
                barriers += 1
                switch.sendall(bytes([1, 19, 0, 8]) + xid)
