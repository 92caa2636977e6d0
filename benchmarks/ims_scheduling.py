"""Service times of a real IMS beside other programs, under SCHED_RR and with a reservation of CPU time.

    python benchmarks/ims_scheduling.py [--busy 0,8] [--bursts 20] [--runs 3] [--json]

Starts a P-CSCF and an S-CSCF (half the published rates: 880 us per message, look-ups of 36 ms) on emulated
hosts, in both ways in turn, beside `--busy` programs at normal priority that never sleep. Bursts of OPTIONS
measure the P-CSCF's time per message, without the first half of each: `message_us` is the median over bursts,
`off_pct` the largest deviation of a burst from the requested time. `late_p99_us` is the 99th percentile of
how much longer than that an answer took after the one before. `lookup_us` is the median look-up. Needs root.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

import topos
from common.errors import RefabricError
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec
from workloads import matrices

WORKLOAD = "sip:130:scale=50:arrivals=constant"
ASKED_US = 880.0
DEADLINE_S = 120.0
LOOKUPS = 30


def spec() -> RunSpec:
    name, params = matrices.parse(WORKLOAD)
    link = LinkSpec(100.0, delay_us=50.0, queue_pkts=1000, nic_queue_pkts=1000)
    return RunSpec(link, TopologySpec("star", {"n": 4}), TransportSpec(1), WorkloadSpec(name, params))


def inside(inside: Inside) -> int:
    """Measure one way, in private namespaces, and report the numbers."""
    from engines.emulation.dataplanes.fabric_dataplane import FabricDataPlane, default_tuning  # noqa: PLC0415
    from engines.emulation.hosts.hosts import HostOptions  # noqa: PLC0415
    from engines.emulation.hosts.network import FabricNet  # noqa: PLC0415
    from engines.emulation.ims.point import place_of, plan_of  # noqa: PLC0415
    from engines.emulation.ims.system import RealIms  # noqa: PLC0415
    from engines.ims import checked  # noqa: PLC0415
    from model.spec import STRICT  # noqa: PLC0415

    wanted = spec()
    topology = topos.build(wanted.topology.kind, wanted.topology.params)
    settings = checked(wanted, topology)
    plane = FabricDataPlane(topology, plan_of(wanted, topology, settings), default_tuning(100.0, STRICT))
    with FabricNet(topology, plane, HostOptions()) as net:
        ims = RealIms(settings, place_of(topology, net), reserve=inside.request["reserve"])
        try:
            ims.start()
            with beside(inside.request["busy"]):
                inside.report({**_numbers(ims, inside.request["bursts"]), "how": ims.scheduled["pcscf1"]})
        finally:
            ims.close()
    return 0


def _numbers(ims: Any, bursts: int) -> dict[str, float]:
    from engines.emulation.ims.servers import answered_s, look_up_s  # noqa: PLC0415
    from engines.emulation.ims.system import BURST  # noqa: PLC0415
    from engines.emulation.kernel.netns import call_in_netns  # noqa: PLC0415

    users, own = ims.place.users, ims.place.addresses[ims.place.users.name]
    proxy, registrar = (ims.running[role][0].server for role in ("pcscf", "scscf"))
    means_us, gaps_us = [], []
    for _ in range(bursts):
        times_s = call_in_netns(users.pid, partial(answered_s, proxy.address, own, BURST))[BURST // 2 :]
        means_us.append(1e6 * (times_s[-1] - times_s[0]) / (len(times_s) - 1))
        gaps_us += [1e6 * (b - a) for a, b in pairwise(times_s)]
    hss = ims.place.addresses[ims.place.hss.name]
    lookups = [call_in_netns(registrar.host.pid, partial(look_up_s, hss)) for _ in range(LOOKUPS)]
    return {
        "message_us": round(statistics.median(means_us), 1),
        "off_pct": round(max(abs(100 * (each / ASKED_US - 1)) for each in means_us), 2),
        "late_p99_us": round(sorted(gaps_us)[int(0.99 * len(gaps_us))] - ASKED_US, 1),
        "lookup_us": round(1e6 * statistics.median(lookups), 1),
    }


@contextmanager
def beside(count: int) -> Iterator[None]:
    """Run `count` programs that never sleep."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def measure(busy: int, reserve: bool, bursts: int) -> dict[str, Any]:
    """Return one row. Raises RefabricError."""
    seen: dict[str, Any] = {"busy": busy}
    request = {"busy": busy, "reserve": reserve, "bursts": bursts}
    spawn_inside("benchmarks.ims_scheduling:inside", request, deadline_s=DEADLINE_S, on_report=seen.update)
    return seen


@click.command()
@click.option("--busy", default="0,8", show_default=True, help="Numbers of busy programs beside the IMS.")
@click.option("--bursts", default=20, show_default=True, help="Bursts of messages per run.")
@click.option("--runs", default=3, show_default=True, help="Runs per setting.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(busy: str, bursts: int, runs: int, as_json: bool) -> None:
    """Measure service times of a real IMS by CPU scheduling, and print them."""
    rows = []
    try:
        with emulation_lock():
            for programs, reserve in _settings(busy, runs):
                rows.append(measure(programs, reserve, bursts))
                if not as_json:
                    print(rows[-1], flush=True)
    except RefabricError as error:
        print(f"ims_scheduling: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    if as_json:
        print(json.dumps({"workload": WORKLOAD, "bursts": bursts, "rows": rows}))


def _settings(busy: str, runs: int) -> Iterator[tuple[int, bool]]:
    """Yield the number of busy programs and the way of scheduling of each run, in order."""
    for programs in busy.split(","):
        for _ in range(runs):
            for reserve in (False, True):
                yield int(programs), reserve


if __name__ == "__main__":
    main()
