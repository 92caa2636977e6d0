"""The channel to switches and the configuration of controllers."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import cast

import pytest

from common.errors import UsageError
from controllers.openflow import osken_app as channel_module
from controllers.openflow.config import ControllerConfig, Mode, parse_address, read_config
from controllers.openflow.messages import Echo, Report
from controllers.openflow.of13 import Codec
from controllers.openflow.osken_app import ControllerError, Server, SwitchChannel

CODEC = Codec()
ECHO_REQUEST = 2


class Nobody:
    """An owner that expects no report."""

    async def identified(self, channel: SwitchChannel, dpid: int) -> None:
        raise AssertionError((channel, dpid))

    def ports_changed(self, channel: SwitchChannel) -> None:
        raise AssertionError(channel)

    def reported(self, channel: SwitchChannel, report: Report) -> None:
        raise AssertionError((channel, report))


async def _served(answers: int) -> int:
    """Return how often a switch is probed until it is disconnected, if it answers the first `answers`."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    far_reader, far_writer = await asyncio.open_connection(sock=theirs)
    serving = asyncio.create_task(SwitchChannel(CODEC, reader, writer).serve(cast(Server, Nobody())))
    far_writer.write(CODEC.hello())
    asked = 0
    try:
        while header := await far_reader.readexactly(8):
            await far_reader.readexactly(int.from_bytes(header[2:4], "big") - 8)
            if header[1] == ECHO_REQUEST:
                asked += 1
                if asked <= answers:
                    far_writer.write(CODEC.answer(Echo(True, 0, b"")))
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    await asyncio.wait_for(serving, 5)
    far_writer.close()
    return asked


@pytest.mark.parametrize("answers", [0, 3])
def test_a_silent_switch_is_disconnected(monkeypatch: pytest.MonkeyPatch, answers: int) -> None:
    monkeypatch.setattr(channel_module, "ECHO_S", 0.05)
    monkeypatch.setattr(channel_module, "SILENT_S", 0.5)
    asked = asyncio.run(asyncio.wait_for(_served(answers), 20))
    assert asked > answers


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (bytes([4, 0, 0, 4, 0, 0, 0, 0]), "sent a message of 4 bytes"),
        (bytes([4, 21, 0, 8, 0, 0, 0, 9]), "in unknown versions"),
    ],
)
def test_bytes_that_are_not_openflow_are_refused(sent: bytes, complaint: str) -> None:
    async def served() -> None:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        theirs.sendall(sent)
        try:
            await SwitchChannel(CODEC, reader, writer).serve(cast(Server, Nobody()))
        finally:
            theirs.close()

    with pytest.raises(ControllerError, match=complaint):
        asyncio.run(asyncio.wait_for(served(), 20))


GOOD = {"topology": "fat_tree", "params": {"k": 4}}


def test_a_configuration_that_is_written_is_read(tmp_path: Path) -> None:
    config = ControllerConfig("ls", {"leaves": 3}, "ecmp", 9, Mode.HYBRID, "unix:/run/of", "/run/c", 5.0)
    (tmp_path / "c.json").write_text(config.to_json())
    assert read_config(tmp_path / "c.json") == config
    assert len(config.build().switches) == 7


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "'topology' is missing"),
        ([1], "must be one JSON object"),
        ({**GOOD, "colour": 1}, "unknown key 'colour'"),
        ({**GOOD, "mode": "lazy"}, "choose one of reactive, proactive, hybrid"),
        ({**GOOD, "seed": "x"}, "'seed' is 'x', which has the wrong type"),
        ({**GOOD, "listen": "tcp:6653"}, "write tcp:ADDRESS:PORT or unix:PATH"),
    ],
)
def test_errors_of_a_configuration_name_its_file(tmp_path: Path, given: object, complaint: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(given))
    with pytest.raises(UsageError, match=complaint) as caught:
        read_config(path)
    assert str(path) in str(caught.value)


def test_a_configuration_that_is_not_there_or_no_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_config(tmp_path / "none.json")
    (tmp_path / "c.json").write_text("{")
    with pytest.raises(UsageError, match=r"c\.json"):
        read_config(tmp_path / "c.json")


def test_addresses_of_a_controller() -> None:
    assert parse_address("tcp:127.0.0.1:6653") == ("127.0.0.1", 6653)
    assert parse_address("unix:/run/of.sock") == Path("/run/of.sock")
    for wrong in ("tcp:127.0.0.1:70000", "unix:", "ssl:1.2.3.4:5", "tcp::5"):
        with pytest.raises(UsageError, match="cannot listen"):
            parse_address(wrong)
