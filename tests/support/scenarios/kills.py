"""Killing runs, from inside a sandbox in which nothing else of the machine can be seen.

Each case starts an outer process, kills a process of its chain with SIGKILL, and compares the sandbox's
interfaces, namespaces, mounts, processes and files with what they were.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from common.errors import BusyError
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from tests.support.leftovers import apart, snapshot, wait_until_gone
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[3]
ISOLATION = "tests.support.scenarios.isolation"
_OUTER = """
import json, sys
sys.path.append(sys.argv[1])
from engines.emulation.sandbox.isolation import spawn_inside
from engines.emulation.sandbox.client import emulation_lock
with emulation_lock(wait_s=float(sys.argv[3])):
    status = spawn_inside(sys.argv[2], None, deadline_s=60,
                          on_report=lambda m: print(json.dumps(m), flush=True))
sys.exit(status)
"""


@dataclass
class Outer:
    """A run's outer process, as a user's command would be."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls, case: str = "network_up", wait_s: float = 0, module: str = ISOLATION) -> Outer:
        argv = [sys.executable, "-c", _OUTER, str(ROOT), f"{module}:{case}", str(wait_s)]
        pipe = subprocess.PIPE
        return cls(subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, cwd="/"))

    def until_report(self) -> None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line and json.loads(line), self.process.communicate(timeout=30)

    def chain(self) -> dict[str, int]:
        """Return the pids of outer, helper, unshare, init (process 1), worker, a host's shell and holder."""
        found = {"outer": self.process.pid}
        above = "outer"
        for role in ("helper", "unshare", "init", "worker"):
            below = children(found[above]) if above in found else []
            if below:
                found[role] = below[0]
            above = role
        for pid in children(found.get("worker", -1)):
            if "mininet:" in command(pid):
                found["shell"] = pid
            elif "sleep" in command(pid):
                found["holder"] = pid
        return found

    def finish(self) -> tuple[int, str]:
        """Wait for the end; return the exit status and stderr."""
        _, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stderr


def kill_each_when_up(inside: Inside) -> int:
    """Kill the process of role `request` once the network is up."""
    apart()
    before = snapshot()
    outer = Outer.start()
    outer.until_report()
    pid = outer.chain()[inside.request]
    os.kill(pid, signal.SIGKILL)
    if inside.request in ("shell", "holder"):
        time.sleep(0.2)
        assert outer.process.poll() is None, "losing a host's shell must not end the run"
        outer.process.send_signal(signal.SIGINT)
    status, stderr = outer.finish()
    inside.report({"status": status, "stderr": stderr[-500:], "left": wait_until_gone(before)})
    return 0


def kill_at_random_moments(inside: Inside) -> int:
    """Kill outer, unshare or init at moments spread over their start, when little of the chain exists."""
    apart()
    with emulation_lock():  # this process's own helper is not one that a kill leaves
        pass
    rng = random.Random(inside.request["seed"])
    role, before = inside.request["role"], snapshot()
    for _ in range(inside.request["times"]):
        outer = Outer.start()
        time.sleep(rng.uniform(0.0, 0.35))
        os.kill(outer.chain().get(role, outer.process.pid), signal.SIGKILL)
        status, stderr = outer.finish()
        assert status != 0, stderr
        left = wait_until_gone(before)
        with emulation_lock():
            inside.report({"left": left})
    again = Outer.start("echo")
    inside.report({"again": again.finish()[0]})
    return 0


def interrupt(inside: Inside) -> int:
    """Ctrl-C (SIGINT to the outer process): the worker ends in order, and nothing is left."""
    apart()
    before = snapshot()
    outer = Outer.start("hang")
    outer.until_report()
    start = time.monotonic()
    outer.process.send_signal(signal.SIGINT)
    status, stderr = outer.finish()
    took_s = time.monotonic() - start
    inside.report({"status": status, "stderr": stderr, "s": took_s, "left": wait_until_gone(before)})
    return 0


def second_run(inside: Inside) -> int:
    """A second run refuses and names the first; one that waits goes ahead when the first is killed."""
    first = Outer.start("hang")
    first.until_report()
    second = Outer.start("echo")
    status, stderr = second.finish()
    inside.report({"status": status, "named": f"pid {first.process.pid} " in stderr, "stderr": stderr[-400:]})
    patient = Outer.start("echo", wait_s=20)
    time.sleep(0.5)
    assert patient.process.poll() is None
    first.process.kill()
    first.finish()
    inside.report({"patient": patient.finish()[0]})
    return 0


def leave_something(inside: Inside) -> int:
    """Leave a namespace, a process, an interface and a file, which the comparison must find."""
    apart()
    before = snapshot()
    Path("/tmp/left").write_text("x")
    subprocess.run(
        ["ip", "link", "add", "left0", "type", "veth", "peer", "name", "left1"], check=True, timeout=10
    )
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as process:
        mine = Path("/proc/self/ns/net").readlink()
        until(lambda: Path(f"/proc/{process.pid}/ns/net").readlink() != mine, 10.0, "its own namespace")
        inside.report([line.split(":")[0] for line in wait_until_gone(before, 0.1)])
        process.kill()
    return 0


def lock_alone(inside: Inside) -> int:
    """The lock in one process: taken, refused, free again."""
    with emulation_lock():
        try:
            with emulation_lock(wait_s=0.1):
                inside.report({"refused": False})
        except BusyError as error:
            inside.report({"refused": str(os.getpid()) in str(error), "exit": error.exit_code})
    with emulation_lock():
        inside.report({"free": True})
    return 0


def children(pid: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
