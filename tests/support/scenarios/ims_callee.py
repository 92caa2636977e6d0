"""A lone SIPp callee whose caller's ACK comes late: which requests does it answer?"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from pathlib import Path

from engines.emulation.hosts import processes
from engines.emulation.ims.programs import CALLEES_PORT, Users
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.sandbox.inside import Inside

OWN = "127.0.0.1"
READY_S, ANSWERS_S, LATER_S = 10.0, 0.4, 1.5


def request(method: str, branch: str, port: int, number: int) -> bytes:
    return (
        f"{method} sip:u0@{OWN}:{CALLEES_PORT} SIP/2.0\r\n"
        f"Via: SIP/2.0/UDP {OWN}:{port};branch=z9hG4bK{branch}\r\n"
        f"Record-Route: <sip:{OWN}:{port};lr>\r\nMax-Forwards: 70\r\nFrom: <sip:caller@ims>;tag=1\r\n"
        f"To: <sip:u0@ims>\r\nCall-ID: late-ack@{OWN}\r\nCSeq: {number} {method}\r\n"
        f"Contact: <sip:caller@{OWN}:{port}>\r\nContent-Length: 0\r\n\r\n"
    ).encode()


def answers(own: socket.socket, seconds: float) -> list[str]:
    """Return the status and the method of each answer that comes in this time."""
    found, end_s = [], time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        own.settimeout(left_s)
        try:
            lines = own.recv(1 << 16).decode().split("\r\n")
        except TimeoutError:
            break
        (number,) = (line for line in lines if line.startswith("CSeq:"))
        found.append(f"{lines[0].split()[1]} {number.split()[-1]}")
    return found


def listening() -> bool:
    return f":{CALLEES_PORT:04X} " in Path("/proc/self/net/udp").read_text()


def inside(inside: Inside) -> int:
    """Call, lose the ACK, hang up, let the ACK arrive, repeat the BYE; report the answers to each."""
    folder = Path(tempfile.mkdtemp(prefix="ims-callee-"))
    users = Users(HostRef("users", os.getpid()), OWN, folder, {})
    users.start_callees()
    try:
        end_s = time.monotonic() + READY_S
        while not listening() and time.monotonic() < end_s:
            time.sleep(0.02)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            own.bind((OWN, 0))
            port = own.getsockname()[1]
            bye = request("BYE", "bye", port, 2)
            for name, wait_s, message in (
                ("call", 0.0, request("INVITE", "invite", port, 1)),
                ("first", 0.0, bye),
                ("late ack", 0.0, request("ACK", "ack", port, 1)),
                ("repeated", LATER_S, bye),
                ("of a new transaction", LATER_S, request("BYE", "other", port, 2)),
            ):
                time.sleep(wait_s)
                own.sendto(message, (OWN, CALLEES_PORT))
                inside.report({"message": name, "answers": answers(own, ANSWERS_S)})
    finally:
        processes.end(users.all())
    return 0
