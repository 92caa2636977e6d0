"""A silent switch is probed and then disconnected; one that answers stays connected."""

from __future__ import annotations

import asyncio
import socket

import pytest

from controllers.openflow import channel as channel_module
from controllers.openflow.channel import ControllerError, SwitchChannel
from controllers.openflow.messages import Echo, Report
from controllers.openflow.of13 import Codec

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
    serving = asyncio.create_task(SwitchChannel(CODEC, reader, writer).serve(Nobody()))
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
            await SwitchChannel(CODEC, reader, writer).serve(Nobody())
        finally:
            theirs.close()

    with pytest.raises(ControllerError, match=complaint):
        asyncio.run(asyncio.wait_for(served(), 20))
