"""An agent for tests that answers as the recorded one does: python fake_agent.py SOCKET [how it fails]."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[3]))

from tests.support.portus.messages import CHANGE_PROGRAM, GROWN, INSTALL

CREATE, MEASURE, READY = 0, 1, 5
WINDOW = 20 * 1448


def main() -> None:
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path, *how = sys.argv[1:]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    ours.bind(path)
    while True:
        data, sender = ours.recvfrom(32_768)
        kind, _, flow = struct.unpack_from("<HHI", data)
        if kind == READY and how != ["silent"]:
            ours.sendto(INSTALL, sender)
            if how == ["two"]:
                ours.sendto(INSTALL[:8] + struct.pack("<I", 2) + INSTALL[12:], sender)
        if kind == CREATE:
            ours.sendto(CHANGE_PROGRAM[:4] + struct.pack("<I", flow) + CHANGE_PROGRAM[8:], sender)
        if kind == MEASURE and len(data) > 16:
            if how == ["dies"]:
                os._exit(3)
            ours.sendto(GROWN[:4] + struct.pack("<I", flow) + GROWN[8:-8] + struct.pack("<Q", WINDOW), sender)


main()
