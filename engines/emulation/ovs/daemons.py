"""ovsdb-server and ovs-vswitchd of the run alone, below its private /run (inside.py).

Nothing here touches the machine's own Open vSwitch: the database is made anew, every socket is in a folder
that only the run sees, and the daemons are children that end with its namespaces. The folder is where
Open vSwitch's tools look by default, so `ovs-ofctl dump-flows p0e0` typed in the run needs no option.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engines.emulation.ovs.database import Bridge, configuration, configured, interface_errors, transact
from fabric.errors import CommandError, DeadlineError, HostUnfitError, RunError

RUN = Path("/run/openvswitch")
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-ofctl", "ovs-dpctl")
START_S, END_S = 10.0, 5.0
START_S_A_BRIDGE = 0.5
POLL_S = 0.005
_LOG = ("-vconsole:off", "-vsyslog:off", "-vfile:info")


def program(name: str) -> str:
    """Its path. Raises HostUnfitError where Open vSwitch is not installed."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None or not SCHEMA.is_file():
        missing = name if found is None else SCHEMA
        raise HostUnfitError(
            f"--dataplane ovs needs Open vSwitch, {missing} is missing: run: setup/install.sh"
        )
    return found


def check_installed() -> None:
    """Raises HostUnfitError naming what is missing and the command that installs it."""
    for name in PROGRAMS:
        program(name)


def environment() -> dict[str, str]:
    """For programs that talk to the run's Open vSwitch."""
    folders = {name: str(RUN) for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR")}
    return {**os.environ, **folders}


def command(*argv: str, stdin: str = "", deadline_s: float = 30.0) -> str:
    """Run one of Open vSwitch's tools; what it prints. Raises CommandError with its last words."""
    told = " ".join(argv)
    try:
        done = subprocess.run(
            [program(argv[0]), *argv[1:]], input=stdin, capture_output=True, text=True,
            timeout=deadline_s, env=environment(), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise DeadlineError(f"`{told}` did not end within {deadline_s:g} s") from error
    if done.returncode:
        raise CommandError(f"`{told}` ended with {done.returncode}: {last_words(done.stderr)}")
    return done.stdout


def last_words(text: str, lines: int = 3) -> str:
    return "; ".join(text.strip().splitlines()[-lines:])


@dataclass(frozen=True)
class _Process:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def told(self) -> str:
        words = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"{self.name} ended with {self.process.poll()}: {last_words(words)}"


class Daemons:
    """A pair of daemons for each of `groups` of bridges. `start`, then `stop`; `check` tells of a death."""

    def __init__(self, groups: Sequence[Sequence[Bridge]], datapath: str, controller: str) -> None:
        """`datapath` is a bridge's `datapath_type`; `controller` a target, empty for none."""
        self._groups = groups
        self._datapath = datapath
        self._controller = controller
        self._running: list[_Process] = []

    @property
    def switch_pids(self) -> list[int]:
        """Process ids of all ovs-vswitchd."""
        return [each.process.pid for each in self._running if each.name.startswith("ovs-vswitchd")]

    def start(self, options: Mapping[str, str]) -> None:
        """The databases first, filled before an ovs-vswitchd first looks, so that it makes all its bridges at
        once; `options` are its own (`other_config`). Raises RunError, DeadlineError, HostUnfitError."""
        RUN.mkdir(mode=0o755, exist_ok=True)
        empty = RUN / "empty.db"
        command("ovsdb-tool", "create", str(empty), str(SCHEMA))
        for group in self._groups:
            database_file = RUN / f"{_named(group)}.db"
            shutil.copyfile(empty, database_file)
            self._spawn("ovsdb-server", group, str(database_file), f"--remote=punix:{_socket(group)}")
        for group in self._groups:
            self._await_socket(_socket(group))
            rows = configuration(group, self._datapath, self._controller, options)
            transact(_socket(group), rows)
            self._spawn("ovs-vswitchd", group, f"unix:{_socket(group)}")
        until = time.monotonic() + START_S + START_S_A_BRIDGE * sum(map(len, self._groups))
        for group in self._groups:
            self._await_bridges(_socket(group), until)

    def stop(self) -> None:
        """TERM to all, a while, KILL. Harmless when nothing runs."""
        running, self._running = self._running, []
        for each in running:
            each.process.send_signal(signal.SIGTERM)
        for each in running:
            try:
                each.process.wait(END_S)
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait(END_S)

    def check(self) -> None:
        """Raises RunError with its last words when a daemon has died."""
        for each in self._running:
            if each.process.poll() is not None:
                raise RunError(each.told())

    def _spawn(self, name: str, group: Sequence[Bridge], *arguments: str) -> None:
        own = f"{name}-{_named(group)}"
        files = (f"--pidfile={RUN / own}.pid", f"--unixctl={RUN / own}.ctl", f"--log-file={RUN / own}.log")
        argv = [program(name), *arguments, *files, "--no-chdir", *_LOG]
        silent = subprocess.DEVNULL
        process = subprocess.Popen(
            argv, stdin=silent, stdout=silent, stderr=silent, env=environment(), start_new_session=True
        )
        self._running.append(_Process(own, process, RUN / f"{own}.log"))

    def _await_socket(self, path: Path) -> None:
        until = time.monotonic() + START_S
        while not path.exists():
            self.check()
            if time.monotonic() > until:
                raise DeadlineError(f"ovsdb-server did not listen at {path} within {START_S:g} s")
            time.sleep(POLL_S)

    def _await_bridges(self, path: Path, until: float) -> None:
        while not configured(path):
            self.check()
            if time.monotonic() > until:
                raise DeadlineError(f"ovs-vswitchd did not make the bridges of {path} in time")
            time.sleep(POLL_S)
        wrong = interface_errors(path)
        if wrong:
            raise RunError(f"Open vSwitch could not open {len(wrong)} interfaces, the first {wrong[0]}")


def _named(group: Sequence[Bridge]) -> str:
    """After its first bridge, which no other group has."""
    return group[0].name


def _socket(group: Sequence[Bridge]) -> Path:
    """Where the group's ovsdb-server answers; of the only group, where ovs-vsctl looks."""
    return RUN / f"{_named(group)}.db.sock"
