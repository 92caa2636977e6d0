"""The user's own programs on real hosts: what they measure, what they may do, and how they fail."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from common.errors import HostUnfitError, RunError
from engines.emulation.engine import MininetEngine
from engines.engine import Silent
from harness.execute.point import Task, run_task
from harness.results.point_results import PointResult
from harness.results.store import Store, load
from model.result import Status
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec

pytestmark = [pytest.mark.emulation, pytest.mark.machine]

SERVER = """
import socket, sys
own = socket.create_server(("", int(sys.argv[1])))
while True:
    peer, _ = own.accept()
    with peer:
        peer.sendall(b"x" * int(peer.recv(64)))
        peer.recv(1)  # one that is closed takes no further subflows
"""
CLIENT = """
import json, socket, sys, time
for _ in range(5):
    began = time.monotonic()
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5) as own:
        own.sendall(b"25000")
        got = 0
        while got < 25000:
            got += len(own.recv(65536))
    print(json.dumps({"ms": 1000 * (time.monotonic() - began), "bytes": got}))
"""
FILES = {"server.py": SERVER, "client.py": CLIENT}
SERVERS = {
    "name": "server", "run": ["{python}", "server.py", "{port}"], "hosts": "first", "port": 8000,
    "ready": "port",
}  # fmt: skip
CLIENTS = {
    "name": "client", "run": ["{python}", "client.py", "{ip:server}", "{port:server}"], "hosts": "others",
    "measure": "json", "ends_run": True,
}  # fmt: skip


def spec_of(*groups: dict[str, Any], files: dict[str, str] | None = None, **more: Any) -> RunSpec:
    subflows, background = more.pop("subflows", 1), more.pop("background", "")
    programs = json.dumps({"programs": groups, "files": files or FILES, "background": background})
    return RunSpec(
        LinkSpec(20.0), TopologySpec("star", {"n": 4}), TransportSpec(subflows, cc="lia"),
        WorkloadSpec("app", {"name": "a.toml", "programs": programs}), traffic="native",
        warmup_s=more.pop("warmup_s", 0.0), seconds=more.pop("seconds", 8.0), **more,
    )  # fmt: skip


def script(text: str, **more: Any) -> RunSpec:
    """Return a point with one program of Python, which ends it."""
    group = {"name": "a", "run": ["{python}", "-c", text], "hosts": "first", "ends_run": True, **more}
    return spec_of(group, seconds=4.0)


def ran(engine: MininetEngine, spec: RunSpec, folder: Path) -> PointResult:
    engine.check(spec)
    run_task(Task(spec), engine, Store(folder, "test"), Silent())
    (point,) = load(folder)
    return point


def failure(engine: MininetEngine, spec: RunSpec, folder: Path) -> str:
    """Run a point that fails; return why, which is one line. Nothing of its programs is left."""
    engine.check(spec)
    with pytest.raises(RunError) as error:
        engine.run(spec, Silent(), folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def running(word: str) -> list[str]:
    """Return the commands on this machine that have the word in them."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has just ended
    return [line for line in found if word in line]


def test_a_server_and_clients_beside_flows_are_measured_and_stored(
    engine: MininetEngine, tmp_path: Path
) -> None:
    began_s = time.monotonic()
    spec = spec_of(SERVERS, CLIENTS, background="stride:1", seconds=20.0, warmup_s=1.0)
    point = ran(engine, spec, tmp_path)
    assert point.status is not Status.FAILED, point.reasons
    assert time.monotonic() - began_s < 20, "the run ends with its clients"
    assert point.metrics["client_ms_count"] == 15
    assert point.metrics["client_bytes_mean"] == 25000
    assert point.metrics["client_ms_p50"] >= 25000 * 8 / 20e3, "20 Mb/s take 10 ms"
    assert point.metrics["programs_unfinished"] == 0
    assert len(point.flows) == 4 and all(flow.goodput_mbps > 0 for flow in point.flows)
    programs = point.sample("programs")
    assert programs["program"].tolist() == ["server", "client", "client", "client"]
    assert programs["exit_code"].tolist()[1:] == [0, 0, 0] and programs["started_s"][0] < 0
    assert (programs["cpu_s"] > 0).all()
    values = point.sample("values")
    assert len(values) == 30 and (values["t_s"] > 0).all()
    assert (point.path / "raw/client-0.txt").read_text().count("bytes") == 5


def test_programs_over_mptcp_use_it(engine: MininetEngine, tmp_path: Path) -> None:
    point = ran(engine, spec_of(SERVERS, CLIENTS, subflows=2), tmp_path)
    assert point.status is not Status.FAILED, point.reasons
    counters = point.provenance["kernel_counters"]
    assert counters["MPTcpExt.MPCapableSYNACKRX"] == 15, counters
    assert counters.get("MPTcpExt.MPCapableFallbackACK", 0) == 0


def test_the_kernel_says_what_connections_used(engine: MininetEngine, tmp_path: Path) -> None:
    slow = CLIENT.replace("25000", "4000000").replace("range(5)", "range(1)")
    point = ran(engine, spec_of(SERVERS, CLIENTS, files={**FILES, "client.py": slow}, subflows=2), tmp_path)
    assert point.status is not Status.FAILED, point.reasons
    ((program, protocol, cc, count, subflows),) = point.sample("connections").rows()
    assert (program, protocol, cc, count, subflows) == ("server", "mptcp", "lia", 3, 2)


CONFINED = """
import json, os, socket
def refused(action):
    try:
        action()
    except OSError:
        return 1
    return 0
def fill():
    with open("full", "wb") as file:
        while True:
            file.write(bytes(1 << 20))
with open("/dev/null", "w") as null, open("/dev/shm/x", "w") as shm:
    print("x", file=null), print("x", file=shm)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
away = socket.socket()
away.settimeout(1)
print(json.dumps({
    "own": len(os.listdir(".")),
    "tmp": refused(lambda: open("/tmp/x", "w")),
    "home": refused(lambda: open(os.path.expanduser("~root/x"), "w")),
    "clone": refused(lambda: open("@ROOT@/x", "w")),
    "full": refused(fill),
    "rights": int(status["CapEff"], 16) + int(status["CapBnd"], 16),
    "links": len(socket.if_nameindex()),
    "away": refused(lambda: away.connect(("192.0.2.1", 80))),
    "name": refused(lambda: socket.getaddrinfo("example.org", 80)),
    "host": int(socket.gethostbyname("s1h2") == "@IP@"),
    "sysctl": refused(lambda: open("/proc/sys/net/ipv4/ip_forward", "w")),
    "low_port": refused(lambda: socket.create_server(("", 80))),
}))
"""


ALLOWED = {
    "own": 2, "tmp": 1, "home": 1, "host": 1, "clone": 1, "full": 1, "rights": 0, "links": 2,
    "away": 1, "name": 1, "sysctl": 1, "low_port": 0,
}  # fmt: skip


def confined() -> RunSpec:
    """Return a point with a program that tries what it may not do."""
    topology = script("").network()
    ip = topology.nics_of(topology.index("s1h2"))[0].ip
    text = CONFINED.replace("@ROOT@", str(Path(__file__).parent)).replace("@IP@", ip)
    return script(text, measure="json")


def reported(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return what that program found: 1 for what was refused."""
    means = {name: value for name, value in metrics.items() if name.endswith("_mean")}
    return {name[2:].removesuffix("_mean"): value for name, value in means.items() if name.startswith("a_")}


def test_a_program_has_its_folder_and_the_runs_network_alone(engine: MininetEngine, tmp_path: Path) -> None:
    point = ran(engine, confined(), tmp_path)
    assert point.status is not Status.FAILED, point.reasons
    assert reported(point.metrics) == ALLOWED


def test_a_missing_program_is_refused_before_anything_starts(engine: MininetEngine) -> None:
    with pytest.raises(HostUnfitError, match="the program no-such-server is missing"):
        engine.check(spec_of({**SERVERS, "run": ["no-such-server"]}))


LEFT = "refabric-test-left-behind"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (script("raise SystemExit('out of beans')"), "program a 0 on s1h0 exited with 1 .*: out of beans"),
        (script("import os; os.abort()"), "was ended by SIGABRT"),
        (script("while True: print('x' * 4000)"), "wrote more than 16 MiB of output"),
        (
            spec_of({**SERVERS, "run": ["sleep", "60"], "ready_s": 0.5}),
            "program server 0 on s1h0 was not ready after 0.5 s: nothing listens at port 8000",
        ),
        (
            spec_of({**SERVERS, "ready": "line:never", "ready_s": 0.5}),
            "was not ready after 0.5 s: no line never",
        ),
        (
            spec_of(
                {**SERVERS, "run": ["{python}", "server.py", "{port}"], "ready_s": 1.0},
                files={"server.py": SERVER.replace('""', '"127.0.0.1"')},
            ),
            r"it listens at 127\.0\.0\.1:8000, which other hosts cannot reach",
        ),
        (
            spec_of({**SERVERS, "run": ["sh", "-c", f"sleep 600 {LEFT} & exit 0"]}),
            "ended by itself .*; it must stay in the foreground",
        ),
    ],
)
def test_a_fault_is_one_line_with_the_last_words(
    engine: MininetEngine, tmp_path: Path, spec: RunSpec, words: str
) -> None:
    said = failure(engine, spec, tmp_path)
    assert re.search(words, said), said
    assert not running(LEFT)


STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        os.execvp("sleep", ["sleep", "600.25"])
print("{}", flush=True)
time.sleep(600)
"""


def test_one_that_forks_away_and_ignores_term_is_ended(engine: MininetEngine, tmp_path: Path) -> None:
    began_s = time.monotonic()
    point = ran(engine, script(STUBBORN), tmp_path)
    assert point.status is Status.SUSPECT
    assert "programs that end the run had not ended" in point.reasons[-1].text
    assert time.monotonic() - began_s < 30
    assert not running("600.25")
