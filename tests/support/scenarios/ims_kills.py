"""Programs of a real IMS killed while it starts and while calls go through: is anything left, does it run?"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from engines.emulation.sandbox.inside import Inside
from tests.support.leftovers import snapshot, wait_until_gone
from tests.support.scenarios.kills import children, command

WORKLOAD = "sip:40:registrations=20:scale=20:arrivals=constant"
NETWORK, MEASURE = "network", "measure"
CHAIN = ("parent", "unshare", "init", "inner")
PROGRAMS = {"kamailio": "/kamailio", "sipp": "/sipp", "redis": "/redis-server"}
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


def until(process: subprocess.Popen[bytes], phase: str) -> None:
    """Wait for the phase. Raises AssertionError if the command ends before."""
    assert process.stdout is not None
    text, end_s = b"", time.monotonic() + ENDS_S
    while f'"{phase}"'.encode() not in text:
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, end_s - time.monotonic()))
        chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
        assert chunk, f"no phase {phase}: {text.decode()[-300:]}"
        text += chunk


def find(process: subprocess.Popen[bytes], role: str) -> int:
    """Return the process of the role, as soon as there is one."""
    end_s = time.monotonic() + GONE_S
    while time.monotonic() < end_s:
        pids = [process.pid]
        if role in CHAIN:
            for _ in range(CHAIN.index(role)):
                pids = [child for pid in pids[:1] for child in children(pid)]
        else:
            every = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
            pids = sorted(pid for pid in every if PROGRAMS[role] in command(pid).partition(" ")[0])
        if pids:
            return pids[0]
        time.sleep(0.01)
    raise AssertionError(f"no process {role}")


def kill(folder: Path, role: str, phase: str) -> list[str]:
    """Kill the role in the phase; return what was wrong afterwards."""
    before = snapshot()
    process = start(folder)
    until(process, phase)
    if phase == MEASURE:
        time.sleep(0.7)
    os.kill(find(process, role), signal.SIGKILL)
    try:
        process.communicate(timeout=ENDS_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return [f"{role} at {phase}: did not end"]
    words = (folder / "log").read_text(errors="replace")
    faults = ["a traceback"] if "Traceback" in words else []
    if role != "parent" and process.returncode != 1:
        faults.append(f"exit code {process.returncode}: {words[-300:]}")
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
