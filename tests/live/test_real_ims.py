"""Real SIP servers between emulated hosts: calls complete, service times are as set, and nothing is left,
whichever program is killed."""

from __future__ import annotations

import contextlib
import dataclasses
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

import pytest

from controllers import ims_scaling
from engines.emulation.engine import MininetEngine
from engines.emulation.kernel.namespaces import HostRef
from engines.emulation.programs import RunningPrograms, run_point
from engines.emulation.sandbox.inside import WORK, Inside
from engines.engine import Silent
from engines.ims import real
from engines.ims.programs import CALLEES_PORT, Users
from engines.wire import ResultReader
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.soak.kill_matrix import Attempt
from tests.support.leftovers import apart, snapshot, wait_until_gone
from tests.support.machine_noise import exact, repeated, run_once
from tests.support.sandboxed import reports
from workloads import matrices

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(bool(real.missing()), reason=f"missing programs: run {real.INSTALL}"),
]


def spec_of(workload: str, seconds: float) -> RunSpec:
    name, params = matrices.parse(workload)
    return RunSpec(
        link=LinkSpec(100.0, delay_us=50.0, queue_pkts=1000, nic_queue_pkts=1000),
        topology=TopologySpec("star", {"n": 6}),
        transport=TransportSpec(1),
        workload=WorkloadSpec(name, params),
        warmup_s=0.0,
        seconds=seconds,
    )


def programs() -> list[str]:
    """Return the SIP servers, SIPps and stores that run on this machine."""
    names = (entry / "comm" for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    running = [name.read_text().strip() for name in names if name.exists()]
    return [name for name in running if name in {"kamailio", "sipp", "redis-server"}]


@pytest.mark.physics
def test_a_fat_tree_carries_a_light_load(engine: MininetEngine, tmp_path: Path) -> None:
    spec = spec_of("sip:80:registrations=40:scale=20:arrivals=constant", 6.0)
    spec = dataclasses.replace(spec, topology=TopologySpec("fat_tree", {"k": 4}))
    result = run_once(engine, spec, tmp_path)
    with exact():
        assert programs() == [] and not WORK.exists()
        calls = result.samples["calls"]
        assert 80 <= calls["offered"].sum() <= 97
        assert calls["completed"].sum() > 0 and calls["registered"].sum() > 0
        assert result.metrics["pcscf_drops_per_s"] == result.metrics["scscf_drops_per_s"] == 0
        assert result.metrics["early_setup_pct"] <= 101
        assert result.provenance["scheduling"] == "SCHED_RR 1"
    assert result.metrics["calls_failed_per_s"] == 0
    assert result.metrics["measured_message_us"] == pytest.approx(2200, rel=0.1)
    assert result.metrics["measured_lookup_us"] == pytest.approx(90_000, rel=0.1)
    assert 90 < result.metrics["setup_ms_p50"] < 200


@pytest.mark.physics
def test_the_controller_adds_what_is_overloaded(engine: MininetEngine, tmp_path: Path) -> None:
    spec = spec_of("sip:220:registrations=40:scale=20:arrivals=constant:policy=queue", 12.0)
    result = run_once(engine, spec, tmp_path)
    steps = [(role, step) for _, role, step in result.provenance["steps"]]
    assert ("scscf", "add") in steps
    assert result.metrics["scscf_most"] == 2
    late = result.samples["components"]
    last = late["t_s"] == late["t_s"].max()
    assert {"s1", "s2"} <= set(late["name"][last].tolist())


@pytest.mark.physics
def test_users_give_up_after_their_patience_and_buffers_have_their_size(
    engine: MininetEngine, tmp_path: Path
) -> None:
    """Too much load for the S-CSCF, and no controller. SIPp's clock has steps of 4 ms."""
    late = "sip:150:registrations=0:lookup_us=60000:patience_ms=1000:buffer=50"
    spec = spec_of(f"{late}:scale=20:arrivals=constant", 8.0)
    result = run_once(engine, dataclasses.replace(spec, seed=3), tmp_path)
    with exact():
        assert set(result.samples["components"]["name"].tolist()) == {"p1", "s1"}
        assert result.provenance["steps"] == []
        assert result.metrics["setup_ms_p99"] <= 1010
        assert result.metrics["calls_failed_per_s"] > 0
        waiting = result.samples["components"]["waiting"].astype(float)
        assert 25 < waiting.max() <= 51
    assert result.metrics["scscf_onset_s"] > 0


IDLE_S = 6


def impatient(inside: Inside) -> int:
    """Run the point; its controller drains an instance after IDLE_S, not 20 s."""
    ims_scaling.IDLE_S = IDLE_S
    return run_point(inside)


@pytest.mark.physics
def test_a_drained_instance_ends_when_its_calls_have() -> None:
    """Two of each are too many from the start, so one is drained; no call may be lost by it.

    It ends 5 s later than its calls, because Kamailio remembers their transactions for so long.
    """
    spec = spec_of("sip:30:registrations=10:scale=20:arrivals=constant:pcscf=2:scscf=2:policy=queue", 19.0)

    def run() -> RunResult:
        reader = ResultReader(Silent())
        for message in reports(impatient, {"spec": dataclasses.replace(spec, seed=4).to_json()}):
            reader.take(message)
        return reader.result("emulation")

    result = repeated(run)
    with exact():
        assert {(role, step) for _, role, step in result.provenance["steps"]} == {
            ("pcscf", "drain"),
            ("scscf", "drain"),
        }
        late = result.samples["components"]
        assert set(late["name"][late["t_s"] == late["t_s"].max()].tolist()) == {"p1", "s1"}
        assert result.metrics["calls_failed_per_s"] == 0


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


def late_ack(inside: Inside) -> int:
    """Call, lose the ACK, hang up, let the ACK arrive, repeat the BYE; report the answers to each."""
    folder = Path(tempfile.mkdtemp(prefix="ims-callee-"))
    programs = RunningPrograms()
    users = Users(programs, HostRef("users", os.getpid()), OWN, folder, {})
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
        programs.end_all()
    return 0


def test_every_bye_is_answered_and_ends_the_repeated_answers_to_the_invite() -> None:
    """Timer J of RFC 3261, although SIPp's calls end with their last message."""
    assert {report["message"]: report["answers"] for report in reports(late_ack, deadline_s=60)} == {
        "call": ["180 INVITE", "200 INVITE"],
        "first": ["200 BYE"],
        "late ack": [],
        "repeated": ["200 BYE"],
        "of a new transaction": ["200 BYE"],
    }


LIGHT = "sip:40:registrations=20:scale=20:arrivals=constant"
NETWORK, MEASURE = "network", "measure"
PROGRAMS = {"kamailio": "SIP server", "sipp": "users", "redis": "HSS"}
"""The kill matrix's names for them."""
CELLS = (("kamailio", NETWORK), *((role, MEASURE) for role in ("inner", *PROGRAMS)))
"""Of the programs that every run has, the others are killed in test_isolation.py and test_kill_matrix.py."""
ENDS_S = 60.0
GONE_S = 15.0


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the user's command; its output goes to a file beside the results."""
    program = str(Path(sys.executable).with_name("refabric"))
    options = ("--seeds", "1", "--seconds", "5", "--retry-suspect", "0", "--force", "--json")
    argv = [program, "run", "ims-ladder", "--engine", "mininet", "--workload", LIGHT, *options]
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


def killed_in_turn(inside: Inside) -> int:
    """Kill each program in each phase, then run undisturbed beside busy ports; report what was wrong."""
    apart()
    folder = Path(tempfile.mkdtemp(prefix="ims-kills-"))
    for role, phase in CELLS:
        inside.report({"cell": f"{role} at {phase}", "faults": kill(folder, role, phase)})
    with busy_ports():
        process = start(folder)
        process.communicate(timeout=ENDS_S)
    points = [json.loads(path.read_text()) for path in folder.glob("results/ims/*/run.json")]
    states = [point["status"] for point in points]
    faults = [] if states in (["ok"], ["suspect"]) else [f"{states}: {(folder / 'log').read_text()[-300:]}"]
    inside.report({"cell": "undisturbed", "faults": faults})
    return 0


def test_nothing_is_left_of_a_killed_ims_and_the_next_run_works() -> None:
    seen = reports(killed_in_turn, deadline_s=600)
    cells = [f"{role} at {phase}" for role, phase in CELLS]
    assert [report["cell"] for report in seen] == [*cells, "undisturbed"]
    assert [fault for report in seen for fault in report["faults"]] == []
