"""The run's own ovsdb-server and ovs-vswitchd, below its private /run (sandbox/inside.py).

Nothing here touches the machine's Open vSwitch. The database is new, all sockets are in a folder that only
the run sees, and the daemons are children that end with the run's namespaces. Open vSwitch's tools look in
that folder by default, so `ovs-ofctl dump-flows p0e0` needs no option inside the run.

The database gets all bridges, ports and controllers in one transaction (RFC 7047). `ovs-vsctl` would need one
process, with an argument list and a copy of the database, for every few ports. Tables and columns:
ovs-vswitchd.conf.db(5).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from common.errors import CommandError, DeadlineError, HostUnfitError, RunError
from engines.emulation.kernel.proc import is_zombie

RUN = Path("/run/openvswitch")
SOCKET = RUN / "db.sock"
ANSWER_S = 20.0
"""How long ovsdb-server may take to answer."""
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
        transact(configuration(self._bridges, self._datapath, self._controller, options))
        self._spawn(SWITCH, f"unix:{SOCKET}")
        deadline_s = START_S + START_S_A_BRIDGE * len(self._bridges)
        self._await(configured, deadline_s, "ovs-vswitchd did not make its bridges")
        wrong = interface_errors()
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


Row = dict[str, Any]
DATABASE = "Open_vSwitch"
_CONFIGURED = 1
"""`next_cfg` of our only transaction; ovs-vswitchd copies it to `cur_cfg` when it has carried it out."""

_CONNECT_S = 1.0


@dataclass(frozen=True)
class Bridge:
    """One switch: its bridge's name, datapath id, and the interface of each port number."""

    name: str
    dpid: int
    ports: Mapping[int, str]


def configuration(
    bridges: Sequence[Bridge], datapath_type: str, controller: str, options: Mapping[str, str]
) -> list[Row]:
    """Return the operations that make `bridges`.

    `controller` is a target such as `unix:/run/of.sock`, or empty; `options` are ovs-vswitchd's
    `other_config`.
    """
    # Without this QoS, ovs-vswitchd would delete the interfaces' queue disciplines, which shape the links.
    rows: list[Row] = [_insert("QoS", "q", {"type": "linux-noop"})]
    for bridge in bridges:
        rows += _bridge(bridge, datapath_type, controller)
    made = ["set", [_named(f"b{bridge.dpid}") for bridge in bridges]]
    root = {"bridges": made, "next_cfg": _CONFIGURED, "other_config": _map(options)}
    return [*rows, {"op": "insert", "table": DATABASE, "row": root}]


def _bridge(bridge: Bridge, datapath_type: str, controller: str) -> Iterator[Row]:
    ports = [f"p{bridge.dpid}n{number}" for number in bridge.ports]
    for name, (number, interface) in zip(ports, bridge.ports.items(), strict=True):
        yield _insert("Interface", f"i{name}", {"name": interface, "ofport_request": number})
        yield _insert("Port", name, {"name": interface, "interfaces": _named(f"i{name}"), "qos": _named("q")})
    row: Row = {
        "name": bridge.name,
        "datapath_type": datapath_type,
        "fail_mode": "secure",
        "protocols": ["set", ["OpenFlow10", "OpenFlow13", "OpenFlow15"]],
        "ports": ["set", [_named(name) for name in ports]],
        "other_config": _map({"datapath-id": f"{bridge.dpid:016x}", "disable-in-band": "true"}),
    }
    if controller:
        row["controller"] = _named(f"c{bridge.dpid}")
        # A controller may compute for some seconds; the run itself detects its death.
        patience = {"inactivity_probe": 60_000, "max_backoff": 1000, "connection_mode": "out-of-band"}
        yield _insert("Controller", f"c{bridge.dpid}", {"target": controller, **patience})
    yield _insert("Bridge", f"b{bridge.dpid}", row)


def _insert(table: str, name: str, row: Row) -> Row:
    return {"op": "insert", "table": table, "uuid-name": name, "row": row}


def _named(name: str) -> list[str]:
    return ["named-uuid", name]


def _map(values: Mapping[str, str]) -> list[Any]:
    return ["map", [[key, value] for key, value in values.items()]]


def listens(path: Path) -> bool:
    """Return whether ovsdb-server accepts connections at `path`. Raises RunError for unexpected errors.

    The socket file exists from bind(2) on, but connections are refused until listen(2).
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_CONNECT_S)
            connection.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except OSError as error:
        raise _unreachable(path, error) from error
    return True


def transact(operations: Sequence[Row]) -> list[Row]:
    """Execute `operations` as one transaction through ovsdb-server's SOCKET; return their results.

    Raises RunError with the database's error if it refuses, DeadlineError if it does not answer.
    """
    request = {"method": "transact", "params": [DATABASE, *operations], "id": 0}
    results: list[Row] = _ask(request)
    for result in results:
        if result and "error" in result:
            reason = f"{result['error']}: {result.get('details', '')}"
            raise RunError(f"writing the network to Open vSwitch's database: {reason}")
    return results


def configured() -> bool:
    """Return whether ovs-vswitchd has carried out the configuration."""
    select = {"op": "select", "table": DATABASE, "where": [], "columns": ["cur_cfg"]}
    carried_out: int = transact([select])[0]["rows"][0]["cur_cfg"]
    return carried_out >= _CONFIGURED


def interface_errors() -> list[str]:
    """Return ovs-vswitchd's errors for interfaces that it could not open, one line each."""
    wrong = {"op": "select", "table": "Interface", "columns": ["name", "error"],
             "where": [["error", "!=", ["set", []]]]}  # fmt: skip
    return [f"{row['name']}: {row['error']}" for row in transact([wrong])[0]["rows"]]


def disconnected() -> int:
    """Return how many bridges have no connection to their controller."""
    wrong = {"op": "select", "table": "Controller", "columns": ["target"],
             "where": [["is_connected", "==", False]]}  # fmt: skip
    return len(transact([wrong])[0]["rows"])


def _ask(request: Row) -> Any:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_S)
            connection.connect(str(SOCKET))
            connection.sendall(json.dumps(request).encode())
            return _answer(connection)
    except TimeoutError as error:
        raise DeadlineError(f"ovsdb-server did not answer within {ANSWER_S:g} s") from error
    except OSError as error:
        raise _unreachable(SOCKET, error) from error


def _unreachable(path: Path, error: OSError) -> RunError:
    return RunError(f"connecting to ovsdb-server at {path}: {error.strerror}")


def _answer(connection: socket.socket) -> Any:
    received = bytearray()
    decoder = json.JSONDecoder()
    while data := connection.recv(1 << 16):
        received += data
        try:
            message, _ = decoder.raw_decode(received.decode())
        except ValueError:
            continue  # The message is not complete yet.
        if message.get("error"):
            raise RunError(f"sending a request to ovsdb-server: {message['error']}")
        return message["result"]
    raise RunError("reading ovsdb-server's answer: it closed the connection")


_PROBE = "refabric"
_TUN = Path("/dev/net/tun")


class Datapath(StrEnum):
    """`datapath_type` of a bridge (ovs-vswitchd.conf.db(5))."""

    KERNEL = "system"
    USER = "netdev"

    @property
    def words(self) -> str:
        return "the kernel's datapath" if self is Datapath.KERNEL else "the user-space datapath (netdev)"


def choose(asked: str) -> Datapath:
    """Return the datapath for a run in this process's namespaces, by a name of model/spec.py.

    Raises HostUnfitError if it is not available.
    """
    failure = "" if asked == "user" else _kernel_refuses()
    if asked != "user" and not failure:
        return Datapath.KERNEL
    if asked == "kernel":
        raise HostUnfitError(
            f"the kernel has no Open vSwitch datapath ({failure}): run: modprobe openvswitch, or choose "
            "--datapath user"
        )
    if not _TUN.exists():
        raise HostUnfitError(f"Open vSwitch's user-space datapath needs {_TUN}: run: modprobe tun")
    return Datapath.USER


def _kernel_refuses() -> str:
    """Return why the kernel makes no datapath; empty if it does. Trying also loads the module."""
    try:
        command("ovs-dpctl", "add-dp", _PROBE)
        command("ovs-dpctl", "del-dp", _PROBE)
    except CommandError as error:
        return str(error).rpartition(": ")[2]
    return ""
