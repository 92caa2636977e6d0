"""Two-host networks in private namespaces, for tests of the end hosts' side.

`run_isolated(scenario)` runs a module-level function in a fresh process inside private network,
mount and PID namespaces: whatever it starts is gone when it ends. `pairs(n)` makes n client-server
host pairs there, each joined by a veth.
"""

from __future__ import annotations

import importlib
import inspect
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engines.emulation.kernel.namespaces import HostRef, call_in_netns
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
ISOLATE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def run_isolated(scenario: Callable[[], None], timeout_s: float = 60) -> str:
    """Run `scenario` in private namespaces; return its stdout. Raises AssertionError with its stderr if one
    of its assertions failed, RuntimeError if it failed otherwise."""
    argv = [*ISOLATE, sys.executable, "-m", "tests.support.two_hosts"]
    argv += [inspect.getfile(scenario), scenario.__name__]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode != 0:
        output = f"{scenario.__name__}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        raise AssertionError(output) if "AssertionError" in done.stderr else RuntimeError(output)
    return done.stdout


@dataclass(frozen=True)
class Pair:
    """A client and a server on one link; /30 addresses."""

    client: HostRef
    server: HostRef
    client_ip: str
    server_ip: str


def pairs(count: int, rate_mbit: int = 0) -> list[Pair]:
    """Return `count` pairs with links shaped by tbf to `rate_mbit` both ways, or unshaped if it is 0."""
    made = []
    for i in range(count):
        client, server = _host(f"c{i}"), _host(f"s{i}")
        address = f"10.{i // 256}.{i % 256}"
        made.append(Pair(client, server, f"{address}.1", f"{address}.2"))
    _ip([line for i, pair in enumerate(made) for line in _link(i, pair)])
    for pair in made:
        for host, ip in ((pair.client, pair.client_ip), (pair.server, pair.server_ip)):
            call_in_netns(host.pid, partial(_configure, ip, rate_mbit))
    return made


def open_socket(host: HostRef, proto: int = 0) -> socket.socket:
    """Return a TCP socket, or one of MPTCP, in the namespace of a host."""
    made = call_in_netns(host.pid, lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, proto))
    made.settimeout(20)
    return made


def eventually(condition: Callable[[], bool], what: str, deadline_s: float = 10) -> None:
    until(condition, deadline_s, what)


def _host(name: str) -> HostRef:
    argv = ["unshare", "--net", "sh", "-c", "echo up; exec sleep 1000"]
    # A shell does not start with ThreadSanitizer's library, which tests/sanitize.sh preloads.
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, env=env)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    return HostRef(name, process.pid)


def _link(i: int, pair: Pair) -> list[str]:
    return [
        f"link add v{i}a type veth peer name v{i}b",
        f"link set v{i}a netns {pair.client.pid} name eth0",
        f"link set v{i}b netns {pair.server.pid} name eth0",
    ]


def _configure(ip: str, rate_mbit: int) -> None:
    _ip([f"addr add {ip}/30 dev eth0", "link set lo up", "link set eth0 up"])
    if rate_mbit:
        shape = f"tc qdisc add dev eth0 root tbf rate {rate_mbit}mbit burst 16k limit 200k"
        subprocess.run(shape.split(), check=True)


def _ip(lines: list[str]) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    file, name = Path(sys.argv[1]), sys.argv[2]
    sys.path.insert(0, str(file.parent))
    getattr(importlib.import_module(file.stem), name)()
