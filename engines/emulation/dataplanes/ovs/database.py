"""The run's Open_vSwitch database: all bridges, ports and controllers in one transaction (RFC 7047).

`ovs-vsctl` would need one process, with an argument list and a copy of the database, for every few ports.
Tables and columns: ovs-vswitchd.conf.db(5).
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import DeadlineError, RunError

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


def transact(path: Path, operations: Sequence[Row], deadline_s: float = 20.0) -> list[Row]:
    """Execute `operations` as one transaction through ovsdb-server's socket; return their results.

    Raises RunError with the database's error if it refuses, DeadlineError if it does not answer.
    """
    request = {"method": "transact", "params": [DATABASE, *operations], "id": 0}
    results: list[Row] = _ask(path, request, deadline_s)
    for result in results:
        if result and "error" in result:
            reason = f"{result['error']}: {result.get('details', '')}"
            raise RunError(f"writing the network to Open vSwitch's database: {reason}")
    return results


def configured(path: Path) -> bool:
    """Return whether ovs-vswitchd has carried out the configuration."""
    select = {"op": "select", "table": DATABASE, "where": [], "columns": ["cur_cfg"]}
    carried_out: int = transact(path, [select])[0]["rows"][0]["cur_cfg"]
    return carried_out >= _CONFIGURED


def interface_errors(path: Path) -> list[str]:
    """Return ovs-vswitchd's errors for interfaces that it could not open, one line each."""
    wrong = {"op": "select", "table": "Interface", "columns": ["name", "error"],
             "where": [["error", "!=", ["set", []]]]}  # fmt: skip
    return [f"{row['name']}: {row['error']}" for row in transact(path, [wrong])[0]["rows"]]


def disconnected(path: Path) -> int:
    """Return how many bridges have no connection to their controller."""
    wrong = {"op": "select", "table": "Controller", "columns": ["target"],
             "where": [["is_connected", "==", False]]}  # fmt: skip
    return len(transact(path, [wrong])[0]["rows"])


def _ask(path: Path, request: Row, deadline_s: float) -> Any:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(deadline_s)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode())
            return _answer(connection)
    except TimeoutError as error:
        raise DeadlineError(f"ovsdb-server did not answer within {deadline_s:g} s") from error
    except OSError as error:
        raise _unreachable(path, error) from error


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
