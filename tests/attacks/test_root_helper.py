"""What root still does, and for whom: H0, H3, H4, L3 of the review, and the root helper's border.

Users made for these tests have the numbers MALLORY and ALICE.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from distributed.cli import dask_worker

from common.privileges import User
from engines.emulation.hosts import shell
from engines.emulation.sandbox import client, helper, inside
from engines.emulation.sandbox.inside import Caller
from engines.emulation.sandbox.isolation import spawn_inside
from harness.cli.machine import worker
from tests.support.scenarios.kills import children
from tests.support.waiting import until

pytestmark = [pytest.mark.emulation, pytest.mark.machine]

ROOT = Path(__file__).resolve().parents[2]
REFABRIC = Path(sys.executable).with_name("refabric")
MALLORY, ALICE = 61666, 61777
TIMES = ("--warmup", "1", "--seconds", "2", "--retry-suspect", "0")
SHORT = ("--k", "4", "--subflows", "1", "--rate", "5", *TIMES)
LOCKED = """
import sys, time
sys.path.append(sys.argv[1])
from engines.emulation.sandbox import client
client.separate()
with client.emulation_lock(30.0, lambda owner: print("waiting for", owner, flush=True)):
    print("has it", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def of(user: int) -> dict[str, str]:
    """Return the environment of a command that the user started with sudo."""
    return {**os.environ, "SUDO_UID": str(user), "SUDO_GID": str(user), "SUDO_USER": "somebody"}


def status(pid: int) -> Mapping[str, str]:
    """Return the fields of /proc/PID/status; none once it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


@pytest.fixture
def home() -> Iterator[Path]:
    """Yield a folder of MALLORY's that she can reach."""
    folder = Path(f"/var/tmp/refabric-test-{os.getpid()}")
    folder.mkdir(mode=0o755)
    os.chown(folder, MALLORY, MALLORY)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_under_sudo_only_the_helper_and_the_sandbox_are_root(home: Path) -> None:
    """H0: everything that reads and writes files is the user, for good; results are the user's."""
    command = subprocess.Popen(
        [REFABRIC, "run", "cs244-one-to-one", *SHORT], cwd=home, env=of(MALLORY),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    with command:
        assert command.stdout
        found: list[tuple[int, Mapping[str, str]]] = []
        for line in command.stdout:
            if "points:" in line:
                break

        def running() -> bool:
            """Look at all processes once hosts are up."""
            found[:] = [(pid, status(pid)) for pid in descendants(command.pid)]
            return len(found) > 16

        until(running, 30.0, "hosts are up")
        of_command = status(command.pid)
        assert of_command["Uid"].split() == of_command["Gid"].split() == [str(MALLORY)] * 4
        assert of_command["Groups"].split() == [str(MALLORY)]
        assert int(of_command["CapPrm"], 16) == int(of_command["CapEff"], 16) == 0
        assert of_command["NoNewPrivs"] == "1"
        (root,) = [pid for pid in children(command.pid) if status(pid).get("Uid", "").startswith("0")]
        assert "sandbox.helper" in Path(f"/proc/{root}/cmdline").read_text()
        below = {root, *descendants(root)}
        of_root = {pid for pid, about in found if about.get("Uid", "0").startswith("0")}
        assert [pid for pid in of_root - below if status(pid)] == [], "root's outside the sandbox"
        text = command.stdout.read()
        assert command.wait(60) in {0, 1}, text
    owners = {path.lstat().st_uid for path in home.rglob("*")}
    assert owners == {MALLORY}
    assert len(list((home / "results").glob("*/k4-*/run.json"))) == 2, text


@pytest.fixture
def served() -> Iterator[socket.socket]:
    """Yield a connection to a helper whose client is MALLORY."""
    made = client._started(User.of(MALLORY, MALLORY))
    with closing(made.link):
        yield made.connection()
    assert made.process is not None
    assert made.process.wait(20) == 0, "it ends with its client"


def start(what: str, request: object, **more: object) -> dict[str, object]:
    return {"do": "start", "what": what, "request": request, "limit_s": 10.0, "path": "/", **more}


BAD: Mapping[str, Any] = {
    "an unknown request": {"do": "chmod", "path": "/etc/shadow"},
    "no request": {},
    "another function": start("os:system", "id"),
    "a module of the clone": start("tests.support.scenarios.isolation:echo", None),
    "a path": start("/tmp/mine.py", None),
    "not a name": start(["point"], None),  # type: ignore[arg-type]
    "a sysctl of the machine": start(
        "point", {"spec": {"transport": {"sysctls": {"kernel.core_pattern": "|/tmp/mine"}}}}
    ),
    "a sysctl by a path": start("point", {"spec": {"transport": {"sysctls": {"net/../kernel/x": "1"}}}}),
    "a shell, where none was asked for": start("shell", {"spec": {}, "factory": ""}, interactive=True),
    "no limit": {**start("look", None), "limit_s": None},
    "an endless limit": {**start("look", None), "limit_s": 1e300},
    "variables that are none": start("look", None, variables={"A": 3}),
}


@pytest.mark.parametrize("message", BAD.values(), ids=BAD)
def test_what_the_helper_does_not_do(served: socket.socket, message: Mapping[str, object]) -> None:
    read, write = os.pipe()
    folder = os.open("/", os.O_PATH | os.O_DIRECTORY)
    null = os.open(os.devnull, os.O_RDWR)
    helper.send(served, message, [read, write, null, null, null, folder])
    answer = helper.receive(served)
    helper.close([read, write, folder, null])
    assert answer is not None and set(answer[0]) == {"error"}, answer
    assert client.ask(served, {"do": "take"}).keys() & {"ok", "busy"}, "it serves on"


@pytest.mark.parametrize("kinds", ["", "p", "ppnnn", "ppnnnn", "nnnnnd", "ppnnndn", "ppnnndddddd"])
def test_other_descriptors_than_asked_for_start_nothing(served: socket.socket, kinds: str) -> None:
    read, write = os.pipe()
    of_kind = {"p": read, "n": os.open(os.devnull, os.O_RDWR), "d": os.open("/", os.O_PATH | os.O_DIRECTORY)}
    helper.send(served, start("look", None), [of_kind[kind] for kind in kinds])
    answer = helper.receive(served)
    helper.close([*of_kind.values(), write])
    assert answer is None or set(answer[0]) == {"error"}, answer


NONSENSE = {
    "no JSON": struct.pack("!I", 4) + b"{{{{",
    "an array": struct.pack("!I", 2) + b"[]",
    "nested deeply": struct.pack("!I", 200_000) + b"[" * 200_000,
    "too long": struct.pack("!I", 0xFFFFFFFF),
    "not UTF-8": struct.pack("!I", 2) + b"\xff\xff",
}


@pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_ends_its_own_connection_only(data: bytes) -> None:
    made = client._started(User.of(MALLORY, MALLORY))
    with closing(made.link), closing(made.connection()) as bad, closing(made.connection()) as good:
        bad.sendall(data)
        assert bad.recv(1) == b""
        assert client.ask(good, {"do": "take"}).keys() & {"ok", "busy"}


def _runs(pid: int) -> bool:
    return len(list(descendants(pid))) >= 2


def _ended(pids: Sequence[int]) -> bool:
    return not any(map(status, pids))


def test_a_sandbox_ends_at_its_limit_and_with_its_connection() -> None:
    """Whatever its client does: the helper keeps the time."""
    target = "tests.support.scenarios.isolation:hang"
    for ends in ("limit", "connection"):
        link, (life, life_end), (reports, report) = client.connection(), os.pipe(), os.pipe()
        null, folder = os.open(os.devnull, os.O_RDWR), os.open("/", os.O_PATH | os.O_DIRECTORY)
        message = start(target, "stubborn", limit_s=2.0 if ends == "limit" else 60.0)
        link.settimeout(20.0)
        pid = client.ask(link, message, [life, report, null, null, null, folder])["ok"]
        until(partial(_runs, pid), 10.0, "it runs")
        inner = list(descendants(pid))
        if ends == "limit":
            received = helper.receive(link)
            assert received is not None and received[0]["ended"] == -signal.SIGKILL
        link.close()
        until(partial(_ended, [pid, *inner]), 10.0, "all have ended")
        helper.close([life, life_end, reports, report, null, folder])


def test_programs_of_the_user_inside_are_the_users(tmp_path: Path) -> None:
    """Own controllers (`cmd:`) and POX are started in this way."""
    caller = Caller(User.of(MALLORY, MALLORY), {"MINE": "yes"})
    show = "id -u; id -G; grep -E 'CapPrm|CapBnd|NoNewPrivs' /proc/self/status | cut -f2; echo $MINE"
    out = (tmp_path / "out").open("wb+")
    assert caller.start(["sh", "-c", show], stdout=out).wait(10) == 0
    assert (tmp_path / "out").read_text().split() == [str(MALLORY)] * 2 + ["0" * 16] * 2 + ["1", "yes"]


def test_nothing_of_the_users_counts_before_root_is_left(tmp_path: Path) -> None:
    """Neither a setpriv of the current folder or of PATH, nor a variable of the loader."""
    for name in ("setpriv", "env"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran")
        (tmp_path / name).chmod(0o755)
    folder = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    variables = {"PATH": f":{tmp_path}:/usr/bin", "LD_PRELOAD": str(tmp_path / "none.so")}
    out = (tmp_path / "out").open("wb+")
    caller = Caller(User.of(MALLORY, MALLORY), variables, folder)
    assert caller.start(["/usr/bin/id", "-u"], stdout=out, stderr=subprocess.DEVNULL).wait(10) == 0
    os.close(folder)
    assert (tmp_path / "out").read_text().strip() == str(MALLORY)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "path", ["/tmp/raw", "/tmp/raw/x", "/tmp/workload", "/tmp/.X11-unix", "/run/openvswitch", "/"]
)
def test_the_callers_folder_is_attached_at_no_name_of_roots(path: str) -> None:
    assert not inside.is_attachable(Path(path))
    assert inside.is_attachable(Path("/tmp/mine/raw"))


def test_a_request_names_no_function_and_no_folder_for_root() -> None:
    """A shell's own data plane and a folder for output are for tests and guests alone."""
    assert shell._factory("os:system", Caller(User.of(MALLORY, MALLORY))) is None
    assert inside.Inside({"spec": {}, "raw": "/etc"}, -1).raw == inside.RAW


@pytest.mark.parametrize("kind", ["a link", "a folder of hers", "nothing"])
def test_a_folder_of_x11_that_is_not_roots_stays_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """H3: /tmp/.X11-unix as a link made /tmp/ccp of the run hers."""
    (tmp_path / "hers").mkdir()
    os.chown(tmp_path / "hers", MALLORY, MALLORY)
    (tmp_path / "link").symlink_to(tmp_path / "hers")
    names = {"a link": "link", "a folder of hers": "hers", "nothing": "none"}
    monkeypatch.setattr(inside, "X11", tmp_path / names[kind])
    assert inside._hold([]) == []
    monkeypatch.setattr(inside, "X11", tmp_path)
    ((held, handle),) = inside._hold([])
    os.close(handle)
    assert held == tmp_path


def test_an_exchanged_working_folder_is_the_one_that_was_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H3: the folder comes as a descriptor; its name leads nowhere outside."""
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    monkeypatch.chdir(mine)
    monkeypatch.setattr("engines.emulation.sandbox.isolation._current_folder", lambda: str(other))
    spawn_inside("tests.support.scenarios.isolation:write_to", str(other), deadline_s=30)
    assert [path.name for path in mine.iterdir()] == ["result"]
    assert list(other.iterdir()) == []


def test_two_users_queue_up_and_nobody_else_can_hold_the_lock() -> None:
    """L3: the lock is a file that only root can open."""

    def started(user: int, seconds: float) -> subprocess.Popen[str]:
        argv: Sequence[str] = [sys.executable, "-c", LOCKED, str(ROOT), str(seconds)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=of(user), cwd="/")

    first = started(MALLORY, 4.0)
    with first:
        assert first.stdout and first.stdout.readline() == "has it\n"
        lock = helper.FOLDER / helper.LOCK
        as_mallory = ["setpriv", "--reuid", str(MALLORY), "--regid", str(MALLORY), "--clear-groups"]
        tried = subprocess.run([*as_mallory, "flock", "-n", lock, "true"], check=False, capture_output=True)
        assert tried.returncode and b"Permission denied" in tried.stderr
        second = started(ALICE, 0.0)
        with second:
            assert second.stdout
            assert second.stdout.readline().startswith(f"waiting for pid {first.pid} (")
            assert second.stdout.readline() == "has it\n"
            assert second.wait(20) == 0
        assert first.wait(20) == 0


def test_a_worker_of_a_cluster_imports_from_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """H4: Dask's usual folder, /tmp/dask-scratch-space, could be anybody's."""
    seen: list[tuple[list[str], int, int]] = []

    def take(argv: list[str], standalone_mode: bool) -> None:
        assert not standalone_mode
        about = Path(argv[argv.index("--local-directory") + 1]).stat()
        seen.append((argv, about.st_uid, about.st_mode & 0o777))

    monkeypatch.setattr(dask_worker, "main", take)
    done = CliRunner().invoke(
        worker, ["tcp://127.0.0.1:1", "--host", "127.0.0.1", "--real-hosts", "--insecure"]
    )
    assert done.exit_code == 0 and isinstance(worker, click.Command), done.output
    ((argv, uid, mode),) = seen
    assert (uid, mode) == (os.geteuid(), 0o700)
    assert {"--no-nanny", "emulation=1"} <= set(argv)


def test_a_user_who_has_lost_the_helper_is_told_so(home: Path) -> None:
    """The reverse: the helper's end ends the run in one line, and nothing of it remains."""
    with subprocess.Popen(
        [REFABRIC, "run", "cs244-one-to-one", *SHORT], cwd=home, env=of(MALLORY),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as command:  # fmt: skip
        until(lambda: len(list(descendants(command.pid))) > 16, 30.0, "hosts are up")
        below = list(descendants(command.pid))
        os.kill(children(command.pid)[0], signal.SIGKILL)
        began_s = time.monotonic()
        text, _ = command.communicate(timeout=60)
    assert command.returncode in {1, 3}, text
    assert "the root helper" in text and "Traceback" not in text, text
    until(lambda: not any(status(pid) for pid in below), 10.0, "nothing is left")
    assert time.monotonic() - began_s < 60
