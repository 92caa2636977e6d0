"""The launcher of an app's programs: a process of its own with one thread, since it forks.

A program runs as the caller, without capabilities, in its host's network namespace and with mounts of its
own: all read-only but WORK, its folder, and /dev/shm, both of FOLDER_MB. The launcher adopts what programs
leave behind (PR_SET_CHILD_SUBREAPER), and its end is the end of all of them. Output is bounded; each wait has
a deadline. Requests and answers are lines of JSON (app.py).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from common.lines import Lines
from common.privileges import User
from engines.emulation.hosts.processes import go_first
from engines.emulation.kernel.namespaces import (
    CLONE_NEWIPC,
    CLONE_NEWNS,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    enter_netns,
    make_read_only,
    mount,
    unshare,
)
from engines.emulation.sandbox.inside import WORK, Caller
from workloads.app import FILE, JSON, LINE, PORT

FOLDER_MB = 64
MAX_OUTPUT_BYTES, KEPT_BYTES, MAX_LINE = 16 << 20, 64 << 10, 1 << 16
"""What a program may write to stdout and stderr, how much of it is stored, and the longest line."""
MAX_VALUES = 1_000_000
LOOK_S, USE_S = 0.02, 0.5
"""How often readiness is looked for, and how often the use of CPU and memory is read."""
GRACE_S, KILL_S, ANSWER_S = 2.0, 10.0, 60.0
END_S = GRACE_S + KILL_S


@dataclass(eq=False)
class _Running:
    """A program from its request to its end. Times are monotonic."""

    about: dict[str, Any]
    number: int
    """Its place in the request."""
    process: subprocess.Popen[bytes] | None = None
    started_s: float = 0.0
    ended_s: float = 0.0
    status: int | None = None
    cpu_s: float = 0.0
    waited_s: float = 0.0
    rss_mb: float = 0.0
    written: int = 0
    kept: bytearray = field(default_factory=bytearray)
    last: deque[str] = field(default_factory=lambda: deque(maxlen=2))
    """The last lines of stderr, or of stdout if there are none."""
    errors: bool = False
    ready_line: bool = False

    @property
    def runs(self) -> bool:
        return self.process is not None and self.status is None

    def words(self, what: str) -> str:
        """Return one line: who, what happened, and the last words."""
        said = "; ".join(self.last)
        return f"{self.about['name']} {what}" + (f"; its last words: {said}" if said else "")

    def take_line(self, line: bytes, is_error: bool) -> None:
        text = line.decode(errors="replace").strip()
        wanted = self.about["ready"].removeprefix(LINE)
        self.ready_line = self.ready_line or (self.about["ready"].startswith(LINE) and wanted in text)
        if text and (is_error or not self.errors):
            if is_error and not self.errors:
                self.errors = True
                self.last.clear()
            self.last.append(text[:300])


class _Launcher:
    """`lines` has the beginning of a request, if one was read."""

    def __init__(self, link: socket.socket, lines: Lines, request: Mapping[str, Any]) -> None:
        self._link, self._lines = link, lines
        self._caller = Caller(User.from_json(request["user"]))
        self._files: dict[str, str] = request["files"]
        self._raw = Path(request["raw"])
        self._all = [_Running(about, number) for number, about in enumerate(request["programs"])]
        self._by_pid: dict[int, _Running] = {}
        self._poll = select.epoll()
        self._pipes: dict[int, tuple[_Running, bool, Lines]] = {}
        self._pidfds: dict[int, _Running] = {}
        self._opens_s, self._is_open = float("inf"), False
        self._due = [each for each in self._all if not each.about["ready"]]
        self._due.sort(key=lambda each: each.about["start_s"])
        self._used_s = 0.0
        self._error = ""
        self._patterns = {
            text: re.compile(text) for each in self._all if (text := each.about["measure"]) not in ("", JSON)
        }
        self._names: dict[str, int] = {}
        self._values: tuple[list[float], list[int], list[int], list[float]] = ([], [], [], [])
        self._stop_s = float("inf")
        WORK.mkdir(exist_ok=True)
        for name, text in (("hosts", request["hosts"]), ("resolv.conf", "")):
            (WORK / name).write_text(text)
        self._poll.register(link, select.EPOLLIN)

    def serve(self, requests: list[bytes]) -> None:
        """Carry out these requests and further ones until `stop`, or until the other end closes."""
        while True:
            for line in requests:
                asked = json.loads(line)
                answer = self._answer(asked)
                answer = {"error": self._error} if self._error else answer
                self._link.sendall(json.dumps(answer).encode() + b"\n")
                if asked["do"] == "stop":
                    return
            requests = self._turn(self._wait_s())

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if asked["do"] == "ready":
            self._make_ready()
        elif asked["do"] in {"open", "opened"}:
            self._opens_s, self._is_open = asked["at_s"], asked["do"] == "opened"
        elif asked["do"] == "stop":
            self.end()
            return self._found()
        ending = [each for each in self._all if each.about["ends_run"]]
        ended = all(each.status is not None for each in ending)
        return {"done": self._is_open and bool(ending) and ended}

    def _wait_s(self) -> float:
        wait_s = USE_S if self._by_pid else ANSWER_S
        return max(0.0, min(wait_s, self._next_s() - time.monotonic()))

    def _next_s(self) -> float:
        """Return when the next program is to start. Those of the window wait until it is open."""
        start_s = self._due[0].about["start_s"] if self._due else float("inf")
        return self._opens_s + start_s if self._is_open or start_s < 0 else float("inf")

    def _turn(self, wait_s: float) -> list[bytes]:
        """Wait for at most this long and do what is due; return the lines of requests. Exits at their end."""
        found: list[bytes] = []
        for fd, _ in self._poll.poll(wait_s):
            if fd == self._link.fileno():
                data = self._link.recv(1 << 20)
                if not data:
                    self.end()
                    sys.exit(0)
                found += self._lines.take(data)
            elif fd in self._pipes:
                self._read(fd)
            elif fd in self._pidfds:
                self._reap()
        now_s = time.monotonic()
        while now_s >= self._next_s():
            self._start(self._due.pop(0))
        if now_s >= self._used_s + USE_S:
            self._used_s = now_s
            for each in self._by_pid.values():
                self._read_use(each)
            self._reap()
        return found

    def _make_ready(self) -> None:
        """Start the groups with `ready`; wait for each before the next."""
        groups: dict[str, list[_Running]] = {}
        for each in self._all:
            if each.about["ready"]:
                groups.setdefault(each.about["group"], []).append(each)
        for group in groups.values():
            for each in group:
                self._start(each)
            end_s = time.monotonic() + group[0].about["ready_s"]
            waiting = list(group)
            while waiting and not self._error:
                self._turn(LOOK_S)
                waiting = [each for each in waiting if not self._is_ready(each)]
                if waiting and time.monotonic() > end_s:
                    late = waiting[0]
                    about = f"was not ready after {late.about['ready_s']:g} s: {self._lacks(late)}"
                    self._fail(late.words(about))

    def _is_ready(self, each: _Running) -> bool:
        kind = each.about["ready"]
        if kind == PORT:
            return any(at in ("0.0.0.0", each.about["ip"]) for at in _listening(each.about))
        if kind.startswith(LINE):
            return each.ready_line
        assert each.process is not None
        return os.path.lexists(f"/proc/{each.process.pid}/root{WORK}/{kind.removeprefix(FILE)}")

    def _lacks(self, each: _Running) -> str:
        kind = each.about["ready"]
        if kind != PORT:
            return f"no {kind.replace(':', ' ', 1)}"
        port, elsewhere = each.about["port"], sorted(set(_listening(each.about)))
        if elsewhere:
            return (
                f"it listens at {elsewhere[0]}:{port}, which other hosts cannot reach; use {{ip}} or 0.0.0.0"
            )
        return f"nothing listens at port {port}"

    def _start(self, each: _Running) -> None:
        argv = self._caller.confined(each.about["argv"], each.about["env"])
        each.started_s = time.monotonic()
        each.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: self._move_in(each.about["pid"]),  # noqa: PLW1509  # there is one thread
        )
        self._by_pid[each.process.pid] = each
        for pipe, is_error in ((each.process.stdout, False), (each.process.stderr, True)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._pipes[pipe.fileno()] = (each, is_error, Lines())
            self._poll.register(pipe, select.EPOLLIN)
        pidfd = os.pidfd_open(each.process.pid)
        self._pidfds[pidfd] = each
        self._poll.register(pidfd, select.EPOLLIN)

    def _move_in(self, host: int) -> None:
        """Enter the host's network and the program's own mounts; in the child, before it becomes the user."""
        try:
            enter_netns(host)
            unshare(CLONE_NEWNS | CLONE_NEWIPC)
            mount("none", "/", flags=MS_REC | MS_PRIVATE)
            for name in ("hosts", "resolv.conf"):
                if Path("/etc", name).is_file():
                    mount(str(WORK / name), str(Path("/etc", name).resolve()), flags=MS_BIND)
            make_read_only()
            user = self._caller.user
            owner = f",uid={user.uid},gid={user.gid}" if user else ""
            flags = MS_NOSUID | MS_NODEV
            mount("tmpfs", str(WORK), "tmpfs", flags, f"size={FOLDER_MB}m,mode=0755{owner}")
            mount("tmpfs", "/dev/shm", "tmpfs", flags, f"size={FOLDER_MB}m,mode=1777")
            for name, text in self._files.items():
                (WORK / name).write_text(text)
                (WORK / name).chmod(0o755)
            os.chdir(WORK)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        except Exception as error:
            os.write(2, f"refabric: {error}\n".encode())
            os._exit(126)

    def _read(self, fd: int) -> None:
        each, is_error, lines = self._pipes[fd]
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        now_s = time.monotonic()
        found = lines.take(data) if data else lines.take(b"\n")
        each.written += len(data)
        each.kept += data[: max(0, KEPT_BYTES - len(each.kept))]
        for line in found:
            each.take_line(line[:MAX_LINE], is_error)
            if each.about["measure"] and not is_error:
                self._measure(each, line[:MAX_LINE], now_s)
        if data and each.written <= MAX_OUTPUT_BYTES:
            return
        if data:
            each.last.clear()
            self._fail(each.words(f"wrote more than {MAX_OUTPUT_BYTES >> 20} MiB of output"))
        self._close_pipe(fd)

    def _close_pipe(self, fd: int) -> None:
        each, is_error, _ = self._pipes.pop(fd)
        self._poll.unregister(fd)
        assert each.process is not None
        pipe = each.process.stderr if is_error else each.process.stdout
        assert pipe is not None
        pipe.close()

    def _measure(self, each: _Running, line: bytes, now_s: float) -> None:
        if each.about["measure"] == JSON:
            if not line.lstrip().startswith(b"{"):
                return
            try:
                values = json.loads(line)
            except ValueError:
                return  # a line of words, as others
        else:
            match = self._patterns[each.about["measure"]].search(line.decode(errors="replace"))
            values = match.groupdict() if match else {}
        times, programs, names, numbers = self._values
        for name, value in values.items():
            number = _number(value)
            if number is None or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,39}", name):
                continue
            if len(times) >= MAX_VALUES:
                self._fail(each.words(f"is one of those that measured more than {MAX_VALUES} values"))
                return
            times.append(now_s)
            programs.append(each.number)
            names.append(self._names.setdefault(name, len(self._names)))
            numbers.append(number)

    def _read_use(self, each: _Running) -> None:
        assert each.process is not None
        base = Path(f"/proc/{each.process.pid}")
        with contextlib.suppress(OSError):  # it has ended, or the guest's kernel does not count this
            for task in (base / "task").iterdir():
                each.waited_s = max(each.waited_s, int((task / "schedstat").read_text().split()[1]) / 1e9)
        with contextlib.suppress(OSError):
            found = re.search(r"VmHWM:\s*(\d+)", (base / "status").read_text())
            each.rss_mb = max(each.rss_mb, int(found[1]) / 1024 if found else 0.0)

    def _reap(self) -> None:
        """Wait for programs that have ended, and for what they left."""
        for fd, each in list(self._pidfds.items()):
            if select.select([fd], [], [], 0)[0]:
                self._read_use(each)
                self._pidfds.pop(fd)
                self._poll.unregister(fd)
                os.close(fd)
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._by_pid:
                self._ended(self._by_pid.pop(pid), os.waitstatus_to_exitcode(status), used)

    def _ended(self, each: _Running, code: int, used: resource.struct_rusage) -> None:
        assert each.process is not None
        each.process.returncode = each.status = code
        each.ended_s = time.monotonic()
        each.cpu_s = used.ru_utime + used.ru_stime
        each.rss_mb = each.rss_mb or used.ru_maxrss / 1024
        for fd in [fd for fd, (whose, _, _) in self._pipes.items() if whose is each]:
            while fd in self._pipes and select.select([fd], [], [], 0)[0]:
                self._read(fd)
        after = f"after {each.ended_s - each.started_s:.1f} s"
        if each.about["ready"] and code == 0:
            self._fail(each.words(f"ended by itself {after}; it must stay in the foreground"))
        elif each.about["ready"] or code not in each.about["exit_codes"]:
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            self._fail(each.words(f"{how} {after}"))

    def _fail(self, words: str) -> None:
        self._error = self._error or words

    def end(self) -> None:
        """TERM for all, KILL for those that stay, then for all that they left behind."""
        error, self._due, self._stop_s = self._error, [], time.monotonic()
        ours = [each.process.pid for each in self._by_pid.values() if each.process]
        for number in (signal.SIGTERM, signal.SIGCONT):
            _signal_groups(ours, number)
        self._await(GRACE_S)
        _signal_groups(ours, signal.SIGKILL)
        end_s = time.monotonic() + KILL_S
        while time.monotonic() < end_s and (left := list(_descendants())):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._await(LOOK_S)
        self._error = error  # ending them is no failure of theirs

    def _await(self, seconds: float) -> None:
        """Wait until all programs have ended, at most this long."""
        end_s = time.monotonic() + seconds
        while True:
            for fd, _ in self._poll.poll(LOOK_S / 2):
                if fd in self._pipes:
                    self._read(fd)
            self._reap()
            if not self._by_pid or time.monotonic() >= end_s:
                return

    def _found(self) -> dict[str, Any]:
        """Return the results, and store what programs wrote."""
        rows = []
        for each in self._all:
            if each.kept:
                (self._raw / each.about["file"]).write_bytes(each.kept)
            if each.process is None:
                continue
            by_itself = each.ended_s < self._stop_s
            rows.append(
                {
                    "number": each.number,
                    "started_s": each.started_s,
                    "ended_s": each.ended_s if by_itself else None,
                    "exit_code": each.status if by_itself else None,
                    "cpu_s": each.cpu_s,
                    "waited_s": each.waited_s,
                    "alive_s": each.ended_s - each.started_s,
                    "max_rss_mb": each.rss_mb,
                }
            )
        return {"programs": rows, "names": list(self._names), "values": self._values}


def _number(value: object) -> float | None:
    """Return a finite number, of JSON or as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < float("inf") else None


_LISTENS = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}


def _listening(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses at which the port of a program's host listens (proc_net(5))."""
    for name, state in _LISTENS.items():
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/{about['pid']}/net/{name}").read_text().splitlines()[1:]:
                _, local, _, is_in, *_ = line.split()
                address, _, port = local.partition(":")
                if is_in == state and int(port, 16) == about["port"]:
                    last = bytes.fromhex(address[-8:])[::-1]
                    yield socket.inet_ntoa(last) if int(address, 16) else "0.0.0.0"


def _signal_groups(leaders: Sequence[int], number: int) -> None:
    for pid in leaders:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)


def _descendants() -> Iterator[int]:
    """Yield the pids of all processes below this one."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, ValueError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    waiting = parents.get(os.getpid(), [])
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += parents.get(pid, [])


_PR_SET_CHILD_SUBREAPER = 36


def serve(handle: int) -> NoReturn:
    """Be the launcher, with requests from the socket `handle`."""
    signal.signal(signal.SIGINT, lambda _number, _frame: None)  # not SIG_IGN, which programs would inherit
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    go_first()
    link, lines = socket.socket(fileno=handle), Lines()
    os.set_inheritable(handle, False)
    requests: list[bytes] = []
    while not requests:
        data = link.recv(1 << 20)
        if not data:
            sys.exit(0)
        requests = lines.take(data)
    _Launcher(link, lines, json.loads(requests[0])).serve(requests[1:])
    sys.exit(0)
