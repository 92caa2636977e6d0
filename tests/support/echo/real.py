"""Echoes between programs on real hosts."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from engines.emulation import programs
from engines.emulation.dataplanes.dataplane import FABRIC
from engines.emulation.hosts.processes import Process
from engines.emulation.programs import HostNetwork
from engines.emulation.sandbox.client import require
from engines.emulation.sandbox.inside import WORK, Inside
from engines.engine import Observer
from model.network_plan import plan_for
from model.result import RunResult
from model.spec import RunSpec
from tests.support.echo import ECHO, NAME, per_s, result_of
from workloads.matrices import MATRICES

plan_of = plan_for
PORT = 7
SERVER = f"""
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind(("0.0.0.0", {PORT}))
while True:
    data, peer = own.recvfrom(64)
    own.sendto(data, peer)
"""
CLIENT = f"""
import socket, sys, time
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.settimeout(0.5)
own.connect((sys.argv[1], {PORT}))
while True:
    began = time.monotonic()
    try:
        own.send(b"x")
        own.recv(64)
        print(began, 1000 * (time.monotonic() - began), flush=True)
    except OSError:
        pass  # the server does not listen yet
    time.sleep(1 / int(sys.argv[2]))
"""


def check(spec: RunSpec) -> None:
    """Refuse other data planes."""
    assert spec.dataplane == FABRIC
    require("refabric run ...")


def memory_mb(spec: RunSpec) -> float:
    del spec
    return 100.0


def expected_s(spec: RunSpec) -> float:
    return programs.STARTING_S + spec.warmup_s + spec.seconds


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run the point (`on_hosts`, inside)."""
    return programs.spawned(spec, observer, raw, expected_s(spec))


def on_hosts(network: HostNetwork) -> RunResult:
    """Start a server and a client; return the echoes of the window."""
    WORK.mkdir()
    topology, spec = network.topology, network.spec
    first, last = topology.host_names[0], topology.host_names[-1]
    address = topology.nics_of(topology.index(last))[0].ip
    for name, host, code in (("server", last, SERVER), ("client", first, CLIENT)):
        argv = (sys.executable, "-c", code, address, str(per_s(spec)))
        files = (WORK / f"{name}.out", WORK / f"{name}.err")
        network.programs.start(Process(network.hosts[host], argv, *files, {}))
    with network.measuring():
        opens_s = time.monotonic() + spec.warmup_s
        time.sleep(spec.warmup_s + spec.seconds)
    network.programs.check()
    *lines, _ = (WORK / "client.out").read_text().split("\n")
    echoes = [tuple(map(float, line.split())) for line in lines]
    return result_of((sent_s - opens_s, took_ms) for sent_s, took_ms in echoes if sent_s >= opens_s)


def run_point(inside: Inside) -> int:
    """Run the point in a sandbox, whose process has not registered the kind yet."""
    MATRICES[NAME] = ECHO
    return programs.run_point(inside)
