"""Programs of an app (workloads/app.py) on hosts, as the point has them: ready, running, ended, measured.

point.py -- AppRun: one line of JSON each way -- launcher.py -- programs
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from common.errors import DeadlineError, RunError
from common.lines import Lines
from common.privileges import ROOT
from common.processes import SYSTEM_PATH, environment
from engines.app import TABLES, value_metrics
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.launcher import ANSWER_S, END_S
from engines.emulation.measure.socket_table import ConnectionTable
from engines.emulation.sandbox.inside import WORK, Caller
from model.result import NO_VALUE, Table
from workloads.app import App, Program, Setting

SYSCTLS: Mapping[str, str] = {
    "net.ipv4.ip_unprivileged_port_start": "0",
    "net.ipv4.ping_group_range": "0 2147483647",
}
"""Hosts' programs have no capabilities, but may listen at any port and ping."""
LONG_S = 0.5
"""Programs of a shorter life are not judged by how long they waited for a CPU."""
_OF_GUESTS = ("PYTHONPYCACHEPREFIX",)
"""Guests read no byte code of the machine (engines/linux/guest.py): it would decide what a point does."""
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); from engines.emulation.launcher import serve; "
    "serve(int(sys.argv[2]))"
)


class AppRun:
    """The running app, seen from the point. Leaving this context manager ends all programs."""

    def __init__(
        self,
        app: App,
        setting: Setting,
        hosts: Mapping[str, HostRef],
        caller: Caller,
        raw: Path,
        preload: str,
    ) -> None:
        """`preload` is a library for all programs, that of mptcpize(8), or empty. Raises RunError."""
        self._programs, self._opened_s = setting.programs, 0.0
        servers = {
            (setting.addresses[each.host], each.port): each.group.name
            for each in setting.programs
            if each.port
        }
        self._connections = ConnectionTable(list(hosts.values()), servers)
        self._ready_s = sum(group.ready_s for group in app.programs if group.ready)
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-P", "-c", _PROGRAM, str(ROOT), str(theirs.fileno())]
        self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=environment())
        theirs.close()
        self._link, self._lines = ours, Lines()
        user = None if caller.user is None else dataclasses.asdict(caller.user)
        named = "".join(f"{ip} {name}\n" for name, ip in setting.addresses.items())
        programs = [_request(each, setting, hosts[each.host].pid, preload) for each in setting.programs]
        about = {"user": user, "files": app.files, "raw": str(raw), "hosts": f"127.0.0.1 localhost\n{named}"}
        self._send({**about, "programs": programs})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # what it adopted ends with the sandbox
            self._process.wait()

    def make_ready(self) -> None:
        """Start the groups with `ready`, in order. Raises RunError with the last words of one that is not."""
        self._ask("ready", self._ready_s + ANSWER_S)

    def open(self, at_s: float) -> None:
        """Set when the window is expected to open, in monotonic seconds, for what starts before it."""
        self._ask("open", ANSWER_S, at_s=at_s)

    def opened(self, at_s: float) -> None:
        """Set when the window opened, from which starts and the times of results count."""
        self._opened_s = at_s
        self._ask("opened", ANSWER_S, at_s=at_s)

    def done(self) -> bool:
        """Return whether the window is open and all programs that end the run have ended. Raises RunError if
        one has failed.

        It also reads the connections of programs, so it is to be called once a second.
        """
        self._connections.look()
        return bool(self._ask("look", ANSWER_S)["done"])

    def stop(self) -> tuple[dict[str, Table], dict[str, float]]:
        """End all programs; return the tables of engines/app.py, and metrics. Raises RunError."""
        opened_s, closed_s = self._opened_s, time.monotonic()
        self._connections.look()
        found = self._ask("stop", ANSWER_S)
        seen = self._connections.rows()
        rows = [self._row(row, opened_s) for row in found["programs"]]
        t_s, number, name, value = found["values"]
        of = [self._programs[each] for each in number]
        values = Table.from_rows(
            tuple(TABLES["values"]),
            zip(
                [round(at_s - opened_s, 6) for at_s in t_s],
                [each.group.name for each in of],
                [each.number for each in of],
                [each.host for each in of],
                [found["names"][each] for each in name],
                value,
                strict=True,
            ),
        )
        ended = {row["number"] for row in found["programs"] if row["ended_s"] is not None}
        lasting = [number for number, each in enumerate(self._programs) if each.group.ends_run]
        used = [(row["waited_s"], row["alive_s"]) for row in found["programs"] if row["alive_s"] >= LONG_S]
        metrics = {
            "programs": len(self._programs),
            "programs_unfinished": len(set(lasting) - ended),
            "programs_cpu_s": sum(row["cpu_s"] for row in found["programs"]),
            "programs_max_rss_mb": max((row["max_rss_mb"] for row in found["programs"]), default=0.0),
            "programs_waited_pct": max((100 * waited / alive for waited, alive in used), default=0.0),
            "connections": sum(count for *_, count, _ in seen),
            **value_metrics(values, closed_s - opened_s),
        }
        tables = {
            "programs": Table.from_rows(tuple(TABLES["programs"]), rows),
            "values": values,
            "connections": Table.from_rows(tuple(TABLES["connections"]), seen),
        }
        return tables, metrics

    def _row(self, row: Mapping[str, Any], opened_s: float) -> tuple[float | int | str, ...]:
        program, ended = self._programs[row["number"]], row["ended_s"] is not None
        return (
            program.group.name,
            program.number,
            program.host,
            round(row["started_s"] - opened_s, 6),
            round(row["ended_s"] - opened_s, 6) if ended else NO_VALUE,
            float(row["exit_code"]) if ended else NO_VALUE,
            round(row["cpu_s"], 3),
            round(row["waited_s"], 3),
            round(row["max_rss_mb"], 1),
        )

    def _ask(self, what: str, deadline_s: float, **more: object) -> dict[str, Any]:
        self._send({"do": what, **more})
        end_s = time.monotonic() + deadline_s
        lines: list[bytes] = []
        while not lines:
            if not select.select([self._link], [], [], max(0.0, end_s - time.monotonic()))[0]:
                raise DeadlineError(
                    f"programs: their launcher did not answer `{what}` within {deadline_s:g} s"
                )
            data = self._link.recv(1 << 20)
            if not data:
                raise RunError(f"programs: their launcher ended at `{what}`; run the point again")
            lines = self._lines.take(data)
        answer: dict[str, Any] = json.loads(lines[0])
        if "error" in answer:
            raise RunError(answer["error"])
        return answer

    def _send(self, message: object) -> None:
        try:
            self._link.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise RunError(f"programs: their launcher has ended: {error.strerror}") from error


def _request(program: Program, setting: Setting, pid: int, preload: str) -> dict[str, Any]:
    group = program.group
    env = {
        "PATH": SYSTEM_PATH,
        "HOME": str(WORK),
        "TMPDIR": str(WORK),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        **{name: os.environ[name] for name in _OF_GUESTS if name in os.environ},
        **({"LD_PRELOAD": preload} if preload else {}),
        **{name: setting.filled(program, text) for name, text in group.env.items()},
    }
    return {
        "name": str(program),
        "file": f"{group.name}-{program.number}.txt",
        "group": group.name,
        "pid": pid,
        "ip": setting.addresses[program.host],
        "argv": [setting.filled(program, part) for part in group.run],
        "env": env,
        "port": program.port,
        "start_s": program.start_s,
        **{name: getattr(group, name) for name in ("ready", "ready_s", "ends_run", "measure", "exit_codes")},
    }
