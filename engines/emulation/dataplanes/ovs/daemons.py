"""The run's own ovsdb-server and ovs-vswitchd, below its private /run (sandbox/inside.py).

Nothing here touches the machine's Open vSwitch. The database is new, all sockets are in a folder that only
the run sees, and the daemons are children that end with the run's namespaces. Open vSwitch's tools look in
that folder by default, so `ovs-ofctl dump-flows p0e0` needs no option inside the run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import CommandError, DeadlineError, HostUnfitError, RunError
from engines.emulation.dataplanes.ovs.database import (
    Bridge,
    configuration,
    configured,
    interface_errors,
    listens,
    transact,
)
from engines.emulation.kernel.process import is_zombie

RUN = Path("/run/openvswitch")
SOCKET = RUN / "db.sock"
"""The socket of ovsdb-server, and the default of ovs-vsctl."""
SWITCH = "ovs-vswitchd"
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
PROGRAMS = ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-ofctl", "ovs-dpctl")
START_S, END_S = 10.0, 5.0
START_S_A_BRIDGE = 0.5
END_S_A_BRIDGE = 0.25
"""The kernel closes a dead switch's packet sockets one by one; 640 ports take 8 s."""
POLL_S = 0.005
_LOG = ("-vconsole:off", "-vsyslog:off", "-vfile:info")


def program(name: str) -> str:
    """Return the path of a program. Raises HostUnfitError if Open vSwitch is not installed."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None or not SCHEMA.is_file():
        missing = name if found is None else SCHEMA
        raise HostUnfitError(
            f"--dataplane ovs needs Open vSwitch, but {missing} is missing; run: setup/install.sh"
        )
    return found


def check_installed() -> None:
    """Raise HostUnfitError with what is missing and the command that installs it."""
    for name in PROGRAMS:
        program(name)


def environment() -> dict[str, str]:
    """Return the environment for tools that connect to the run's Open vSwitch."""
    folders = {name: str(RUN) for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR")}
    return {**os.environ, **folders}


def command(*argv: str, stdin: str = "", deadline_s: float = 30.0) -> str:
    """Run one of Open vSwitch's tools; return its output. Raises CommandError with its last output."""
    text = " ".join(argv)
    try:
        done = subprocess.run(
            [program(argv[0]), *argv[1:]], input=stdin, capture_output=True, text=True,
            timeout=deadline_s, env=environment(), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise DeadlineError(f"`{text}` did not end within {deadline_s:g} s") from error
    if done.returncode:
        raise CommandError(f"`{text}` exited with {done.returncode}: {last_words(done.stderr)}")
    return done.stdout


def last_words(text: str, lines: int = 3) -> str:
    return "; ".join(text.strip().splitlines()[-lines:])


@dataclass(frozen=True)
class _Process:
    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def ended(self) -> str:
        words = self.log.read_text(errors="replace") if self.log.exists() else ""
        code = self.process.poll()
        return f"{self.name} {'ended' if code is None else f'exited with {code}'}: {last_words(words)}"


class Daemons:
    """Both daemons with the bridges `bridges`: `start`, then `stop`; `check` detects a death."""

    def __init__(self, bridges: Sequence[Bridge], datapath: str, controller: str) -> None:
        """`datapath` is the `datapath_type` of all bridges; `controller` is a target or empty."""
        self._bridges = bridges
        self._datapath = datapath
        self._controller = controller
        self._running: list[_Process] = []

    @property
    def switch_pid(self) -> int:
        """Process id of ovs-vswitchd."""
        return next(each.process.pid for each in self._running if each.name == SWITCH)

    def start(self, options: Mapping[str, str]) -> None:
        """Start ovsdb-server, write the configuration, then start ovs-vswitchd.

        The configuration is complete before ovs-vswitchd reads it, so it makes all bridges at once.
        `options` are ovs-vswitchd's `other_config`. Raises RunError, DeadlineError, HostUnfitError.
        """
        RUN.mkdir(mode=0o755, exist_ok=True)
        command("ovsdb-tool", "create", str(RUN / "conf.db"), str(SCHEMA))
        self._spawn("ovsdb-server", str(RUN / "conf.db"), f"--remote=punix:{SOCKET}")
        self._await(lambda: listens(SOCKET), START_S, f"ovsdb-server did not listen at {SOCKET}")
        transact(SOCKET, configuration(self._bridges, self._datapath, self._controller, options))
        self._spawn(SWITCH, f"unix:{SOCKET}")
        deadline_s = START_S + START_S_A_BRIDGE * len(self._bridges)
        self._await(lambda: configured(SOCKET), deadline_s, "ovs-vswitchd did not make its bridges")
        wrong = interface_errors(SOCKET)
        if wrong:
            raise RunError(f"Open vSwitch could not open {len(wrong)} interfaces; the first: {wrong[0]}")

    def stop(self) -> None:
        """Kill both daemons at once. No effect if none is running. Raises DeadlineError.

        A clean exit would remove the bridges one by one, which the end of the namespaces does anyway.
        """
        running, self._running = self._running, []
        for each in running:
            each.process.kill()
        deadline_s = END_S + END_S_A_BRIDGE * len(self._bridges)
        until = time.monotonic() + deadline_s
        for each in running:
            try:
                each.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise DeadlineError(f"{each.name} did not end within {deadline_s:g} s of SIGKILL") from None

    def check(self) -> None:
        """Raise RunError with its last output if a daemon has ended."""
        for each in self._running:
            if each.process.poll() is not None or is_zombie(each.process.pid):
                raise RunError(each.ended())

    def _spawn(self, name: str, *arguments: str) -> None:
        log = RUN / f"{name}.log"
        argv = [program(name), *arguments, "--pidfile", "--no-chdir", f"--log-file={log}", *_LOG]
        silent = subprocess.DEVNULL
        process = subprocess.Popen(
            argv, stdin=silent, stdout=silent, stderr=silent, env=environment(), start_new_session=True
        )
        self._running.append(_Process(name, process, log))

    def _await(self, done: Callable[[], bool], deadline_s: float, otherwise: str) -> None:
        until = time.monotonic() + deadline_s
        while not done():
            self.check()
            if time.monotonic() > until:
                raise DeadlineError(f"{otherwise} within {deadline_s:g} s")
            time.sleep(POLL_S)
