"""Programs of a real IMS killed while it starts and while calls go through: is anything left, does it run?"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from engines.emulation.sandbox.inside import Inside
from tests.soak.kill_matrix import Attempt
from tests.support.leftovers import snapshot, wait_until_gone

WORKLOAD = "sip:40:registrations=20:scale=20:arrivals=constant"
NETWORK, MEASURE = "network", "measure"
PROGRAMS = {"kamailio": "SIP server", "sipp": "users", "redis": "HSS"}
"""The kill matrix's names for them."""
CELLS = (
    ("inner", NETWORK), ("kamailio", NETWORK),
    *((role, MEASURE) for role in ("parent", "inner", *PROGRAMS)),
)  # fmt: skip
ENDS_S = 60.0
GONE_S = 15.0


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the user's command; its output goes to a file beside the results."""
    program = str(Path(sys.executable).with_name("refabric"))
    options = ("--seeds", "1", "--seconds", "5", "--retry-suspect", "0", "--force", "--json")
    argv = [program, "run", "ims-ladder", "--engine", "mininet", "--workload", WORKLOAD, *options]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*argv, "--results", str(folder / "results")], stdout=subprocess.PIPE, stderr=log
        )


def kill(folder: Path, role: str, phase: str) -> list[str]:
    """Kill the role in the phase; return what was wrong afterwards."""
    before = snapshot()
    attempt = Attempt(start(folder), folder / "log")
    assert attempt.until(phase, ENDS_S), attempt.words()
    if phase == MEASURE:
        time.sleep(0.7)
    pid = attempt.role(PROGRAMS.get(role, role))
    assert pid, f"no process {role}: {attempt.words()}"
    os.kill(pid, signal.SIGKILL)
    code = attempt.finish(ENDS_S)
    if code is None:
        return [f"{role} at {phase}: did not end"]
    words = (folder / "log").read_text(errors="replace")
    faults = ["a traceback"] if "Traceback" in words else []
    if role != "parent" and code != 1:
        faults.append(f"exit code {code}: {words[-300:]}")
    faults += [f"left behind: {line}" for line in wait_until_gone(before, GONE_S)]
    return [f"{role} at {phase}: {fault}" for fault in faults]


@contextlib.contextmanager
def busy_ports() -> Iterator[None]:
    """Listen where SIP servers and redis would on this machine."""
    with contextlib.ExitStack() as stack:
        for kind, port in ((socket.SOCK_DGRAM, 5060), (socket.SOCK_STREAM, 6379)):
            own = stack.enter_context(socket.socket(socket.AF_INET, kind))
            own.bind(("0.0.0.0", port))
            if kind == socket.SOCK_STREAM:
                own.listen()
        yield


def inside(inside: Inside) -> int:
    """Kill each program in each phase, then run undisturbed beside busy ports; report what was wrong."""
    folder = Path(tempfile.mkdtemp(prefix="ims-kills-"))
    for role, phase in inside.request["cells"]:
        inside.report({"cell": f"{role} at {phase}", "faults": kill(folder, role, phase)})
    with busy_ports():
        process = start(folder)
        process.communicate(timeout=ENDS_S)
    points = [json.loads(path.read_text()) for path in folder.glob("results/ims/*/run.json")]
    states = [point["status"] for point in points]
    faults = [] if states in (["ok"], ["suspect"]) else [f"{states}: {(folder / 'log').read_text()[-300:]}"]
    inside.report({"cell": "undisturbed", "faults": faults})
    return 0
