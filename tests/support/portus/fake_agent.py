"""An agent for tests that answers as the recorded ones do: python fake_agent.py SOCKET [how [reports]].

Without `how` it has one program; with `two` it has two, between which it changes after this number of reports
(1 unless given, 10 in the recorded agent); with `unknown` it changes to a program that it did not install.
`silent` and `dies` are what they say.
"""

from __future__ import annotations

import argparse
import os
import socket
import struct
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))

from tests.support.portus.messages import (
    BACK_TO_PROBE,
    CHANGE_PROGRAM,
    GROWN,
    HOLD,
    INSTALL,
    PROBE,
    TO_HOLD,
    TO_PROBE,
    TWENTY,
)

CREATE, MEASURE, READY = 0, 1, 5
WINDOW = 20 * 1448


def addressed(message: bytes, flow: int) -> bytes:
    """Return a recorded message with this flow."""
    return message[:4] + struct.pack("<I", flow) + message[8:]


def answers(how: str, data: bytes, changes: bool) -> list[bytes]:
    """Return what the agent answers to a message of the datapath; `changes` says if a report changes the
    program of an agent that has two."""
    kind, _, flow = struct.unpack_from("<HHI", data)
    if kind == READY:
        return {"silent": [], "two": [PROBE, HOLD]}.get(how, [INSTALL])
    if kind == CREATE:
        begun = addressed(TO_PROBE if how == "two" else CHANGE_PROGRAM, flow)
        return [begun[:8] + struct.pack("<I", 9) + begun[12:]] if how == "unknown" else [begun]
    program, fields = struct.unpack_from("<II", data, 8)
    if not fields:
        return []
    if how == "dies":
        os._exit(3)
    if how == "two":
        sent = [TO_HOLD] if program == 1 else [BACK_TO_PROBE, TWENTY]
        return [addressed(message, flow) for message in sent] if changes else []
    return [addressed(GROWN[:-8] + struct.pack("<Q", WINDOW), flow)]


def main() -> None:
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("how", nargs="?", default="")
    parser.add_argument("reports", nargs="?", type=int, default=1)
    given = parser.parse_args()
    Path(given.path).parent.mkdir(parents=True, exist_ok=True)
    ours.bind(given.path)
    measured = 0
    while True:
        data, sender = ours.recvfrom(32_768)
        measured += int.from_bytes(data[:2], "little") == MEASURE
        for answer in answers(given.how, data, changes=measured % given.reports == 0):
            ours.sendto(answer, sender)


main()
