"""The cost of a flow's first packet: the time a TCP connection takes to open, and to open again.

    python benchmarks/first_packet.py --k 4 [--connections 200] [--modes fabric,hybrid,...] [--json]

A connection is two new flows, of its SYN and of its SYN-ACK. `first_ms` is connect() from an unused port.
`again_ms` is connect() from the same port right after, when both flows' rules are installed. Both are in ms,
medians and 90th percentiles, between a host of the first pod and one of the last. All modes but `fabric` are
Open vSwitch with os-ken's controller. `per_connection` counts the controller's work for one connection, which
is equal on every machine. Links are 100 Mb/s. Needs root.
"""

from __future__ import annotations

import json
import socket
import statistics
import struct
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.network_up import machine
from common.errors import RefabricError, UsageError
from controllers.openflow.config import Mode
from controllers.openflow.control import ControlClient
from engines.emulation.dataplanes.dataplane import DATAPLANES, FABRIC
from engines.emulation.kernel.namespaces import call_in_netns
from engines.emulation.sandbox.client import emulation_lock, require
from engines.emulation.sandbox.inside import Caller, Inside
from engines.emulation.sandbox.isolation import spawn_inside
from model.spec import LinkSpec, OpenFlowSpec, RunSpec, TopologySpec

DEADLINE_S = 300.0
RATE_MBPS = 100.0
FIRST_PORT, SERVER_PORT = 20000, 5001
CONNECT_S = 10.0
MODES = (FABRIC, *(mode.value for mode in (Mode.PROACTIVE, Mode.HYBRID, Mode.REACTIVE)))


def measure(mode: str, k: int, connections: int) -> dict[str, Any]:
    """Open `connections` connections in sequence on one network. Raises RefabricError."""
    dataplane, openflow = (FABRIC, OpenFlowSpec()) if mode == FABRIC else ("ovs", OpenFlowSpec(mode=mode))
    tree = TopologySpec("fat_tree", {"k": k})
    spec = RunSpec(LinkSpec(RATE_MBPS), tree, dataplane=dataplane, openflow=openflow)
    reports: dict[str, Any] = {}
    request = {"spec": spec.to_json(), "connections": connections}
    target = "benchmarks.first_packet:inside"
    spawn_inside(target, request, deadline_s=DEADLINE_S, on_report=reports.update)
    done = {name: round(total / connections, 2) for name, total in reports["counts"].items()}
    times = {name: _spread(reports[name]) for name in ("first_ms", "again_ms")}
    return {"mode": mode, **times, "per_connection": done}


def _spread(values_ms: list[float]) -> dict[str, float]:
    tenths = statistics.quantiles(values_ms, n=10)
    return {"median": round(statistics.median(values_ms), 2), "p90": round(tenths[-1], 2)}


def inside(inside: Inside) -> int:
    """Measure in the private namespaces."""
    from engines.emulation.hosts.network import FabricNet  # noqa: PLC0415

    spec = RunSpec.from_json(inside.request["spec"])
    topology = spec.network()
    plane = DATAPLANES[spec.dataplane].make(spec, topology, Path("/tmp"), Caller())
    with FabricNet(topology, plane) as net:
        refs = net.host_refs()
        client, server = refs[0].pid, refs[-1].pid
        address = topology.nics[-1].ip
        net.hosts[0].cmd(f"ping -c2 -i0.2 {address}")  # ARP both ways
        before = _counts(spec)
        with call_in_netns(server, lambda: _listener(address)):
            pairs = [
                [call_in_netns(client, partial(_connect_ms, address, port)) for _ in range(2)]
                for port in range(FIRST_PORT, FIRST_PORT + inside.request["connections"])
            ]
        inside.report({"first_ms": [first for first, _ in pairs], "again_ms": [again for _, again in pairs]})
        inside.report({"counts": {name: n - before[name] for name, n in _counts(spec).items()}})
    return 0


def _listener(address: str) -> socket.socket:
    listener = socket.socket()
    listener.bind((address, SERVER_PORT))
    listener.listen(4096)
    return listener


def _connect_ms(address: str, port: int) -> float:
    """Connect and reset, so that the port can be used again at once; return the time of connect() in ms."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.settimeout(CONNECT_S)
        connection.bind(("", port))
        began = time.perf_counter()
        connection.connect((address, SERVER_PORT))
        return (time.perf_counter() - began) * 1000


def _counts(spec: RunSpec) -> dict[str, int]:
    if spec.dataplane == FABRIC:
        return {}
    from engines.emulation.dataplanes.ovs.daemons import RUN  # noqa: PLC0415

    client = ControlClient(RUN / "control.sock")
    try:
        counts = client.counts()
    finally:
        client.close()
    return {name: counts[name] for name in ("packets_in", "flows_set_up", "rules_told")}


@click.command()
@click.option("--k", default=4, show_default=True, help="Size k of the FatTree.")
@click.option("--connections", default=200, show_default=True, help="Connections per mode.")
@click.option("--modes", default=",".join(MODES), show_default=True, help="Measure these.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(k: int, connections: int, modes: str, as_json: bool) -> None:
    """Measure how long connections take to open, and print it."""
    names = modes.split(",")
    try:
        require("python benchmarks/first_packet.py")
        if wrong := sorted(set(names) - set(MODES)):
            raise UsageError(f"unknown mode '{wrong[0]}': choose from {', '.join(MODES)}")
        with emulation_lock(wait_s=60.0):
            measured = [measure(mode, k, connections) for mode in names]
    except RefabricError as error:
        print(f"first_packet: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    if as_json:
        head = {"benchmark": "first_packet", "k": k, "connections": connections}
        print(json.dumps({**head, "measured": measured, "machine": machine()}))
        return
    for row in measured:
        first, again = row["first_ms"], row["again_ms"]
        print(
            f"{row['mode']:10} first {first['median']:7.2f} ms (p90 {first['p90']:7.2f})  "
            f"again {again['median']:7.2f} ms (p90 {again['p90']:7.2f})  {row['per_connection']}"
        )


if __name__ == "__main__":
    main()
