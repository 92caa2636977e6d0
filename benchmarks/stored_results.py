"""Cost of a command that reads stored results: seconds, CPU seconds, and the memory of its largest process.

The command runs several times in a row, each time in a process of its own. The first run finds what earlier
commands left; each of the others finds what the one before it left, such as charts that need not be drawn
again. Copy a results folder first: `run`, `plot` and `report` write into it. Or make one:

    python -m benchmarks.stored_results --times 2 --make DIR -- run pfabric --profile paper

`--make` stores a result for each point of the command that has none in DIR, and measures with
`--results DIR`. Networks, flows and numbers of rows are those of the experiment, 9.4 million flows for
pFabric's 822 points; completion times, queues and counts are random, so that verdicts and charts mean
nothing. Making those takes ten minutes and 1.5 GB. `--rows` then measures how long one process takes to read
all rows of flows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from engines.provenance import machine, origin
from engines.registry import STEADY_STATE
from experiments.registry import CATALOGUE
from harness.results import store
from harness.results.run_json import Attempt, utc_now
from harness.results.store import Store
from model.flows import PlannedFlow, planned_flows
from model.result import NO_VALUE, SAMPLE_COLUMNS, FlowRow, PortRow, RunResult, Status, Table
from model.spec import RunSpec
from topos.topology import Topology

COMMAND = "from refabric.command import main; main()"
BUSY_PORTS = 0.2
"""Share of the ports that have a packet in their queue when it is sampled."""
SLOWER = 0.5
"""Mean of how much longer than alone a flow takes, over its time alone."""


@dataclass(frozen=True)
class Cost:
    """The cost of one run; `cpu_s` and `peak_mb` include the processes that it started."""

    seconds: float
    cpu_s: float
    peak_mb: float
    exit_code: int


def cost(arguments: Sequence[str], command: str = COMMAND) -> Cost:
    """Run `refabric`, or another Python `command`, with these arguments; what it prints is dropped."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = used.ru_utime + used.ru_stime
    return Cost(round(seconds, 2), round(cpu_s, 2), round(used.ru_maxrss / 1024, 1), process.returncode)


def make(results: Path, arguments: Sequence[str]) -> None:
    """Store a synthetic result for each point of `run ARGUMENTS` that has none. Raises ClickException."""
    plan = [sys.executable, "-c", COMMAND, "plan", *arguments, "--results", str(results), "--json"]
    planned = subprocess.run(plan, stdout=subprocess.PIPE, check=False, text=True)
    if planned.returncode:
        raise click.ClickException(f"`refabric plan {' '.join(arguments)}` failed")
    events = map(json.loads, planned.stdout.splitlines())
    jobs = [RunSpec.from_json(each["spec"]) for each in events if each["event"] == "job"]
    opened = Store.open(results, CATALOGUE.find(arguments[0]).folder)
    there = {entry.name for entry in store.point_folders(opened.directory)}
    left = [spec for spec in jobs if store.point_name(spec) not in there]
    with ProcessPoolExecutor() as pool:
        for _ in pool.map(_stored, [opened] * len(left), left, chunksize=8):
            pass


def _stored(opened: Store, spec: RunSpec) -> None:
    result, hosts = synthetic(spec)
    with opened.writing(spec) as writer:
        writer.commit(result, hosts, 1.0, [Attempt.of(result, 1.0, utc_now())])


def synthetic(spec: RunSpec) -> tuple[RunResult, int]:
    """Return a result of the right form with random numbers, equal for equal specs, and the hosts."""
    topology = spec.network()
    random = np.random.default_rng(int(spec.content_hash(), 16))
    ports = tuple(_ports(topology, random))
    no_rows = {name: Table.from_rows(SAMPLE_COLUMNS[name], ()) for name in ("goodput", "cpu", "links")}
    packets = spec.engine not in STEADY_STATE
    result = RunResult(
        status=Status.OK,
        flows=tuple(_flows(spec, planned_flows(spec, topology), random)),
        ports=ports,
        samples={**no_rows, **(_queues(spec, len(ports), random) if packets else {})},
        metrics={
            "packet_hops": sum(port.tx_packets for port in ports),
            "injected": sum(port.tx_packets for port in ports) // 4,
            "delivered": sum(port.tx_packets for port in ports) // 4,
        },
        provenance={**origin(), "engine": spec.engine},
        reproducible=True,
        cost={"simulation_cpu_s": 1.0},
    )
    return result, len(topology.hosts)


def _flows(spec: RunSpec, flows: Sequence[PlannedFlow], random: np.random.Generator) -> Iterable[FlowRow]:
    """Yield flows that take SLOWER times longer than alone on average, those that end after the run too."""
    slower = 1 + random.exponential(SLOWER, len(flows))
    for flow, factor in zip(flows, slower.tolist(), strict=True):
        ideal_s = (flow.size_bytes or 1_000_000) * 8e-6 / spec.link.rate_mbps + 1e-5
        start_s = flow.start_s - spec.warmup_s
        ended = bool(flow.size_bytes) and start_s + ideal_s * factor < spec.seconds
        yield FlowRow(
            **flow.columns(),
            subflows_joined=flow.subflows,
            cc=flow.cc,
            goodput_mbps=flow.size_bytes * 8e-6 / spec.seconds if ended else spec.link.rate_mbps / factor,
            bytes_received=flow.size_bytes,
            retransmits=int(10 * (factor - 1)),
            up_s=flow.start_s,
            srtt_ms_mean=ideal_s * factor,
            completed_s=ideal_s * factor if ended else NO_VALUE,
            start_s=start_s,
            ideal_s=ideal_s if flow.size_bytes else NO_VALUE,
        )


def _ports(topology: Topology, random: np.random.Generator) -> Iterable[PortRow]:
    number = 0
    for link in topology.links:
        for here, there in (link.ends, link.ends[::-1]):
            node, peer = topology.nodes[here], topology.nodes[there]
            packets = int(random.integers(1000, 100_000))
            yield PortRow(
                number, node.name, peer.name, f"{node.layer.name.lower()}-{peer.layer.name.lower()}", packets,
                packets * 1500, packets // 1000, int(random.integers(1, 40)), float(random.uniform(1, 100)),
            )  # fmt: skip
            number += 1


def _queues(spec: RunSpec, ports: int, random: np.random.Generator) -> dict[str, Table]:
    if not spec.sampling.queues_ms:
        return {}
    times = np.arange(0, spec.seconds, spec.sampling.queues_ms / 1000).round(9)
    instant, port = np.nonzero(random.random((len(times), ports)) < BUSY_PORTS)
    pkts = random.geometric(0.2, len(port))
    return {
        "queues": Table({"t_s": times[instant], "port": port, "pkts": pkts}),
        "queue_times": Table({"t_s": times}),
    }


READ_ROWS = """
import sys
from pathlib import Path
from harness.results import store
for point in (point for folder in Path(sys.argv[1]).iterdir() for point in store.scan(folder).points):
    point.flows.columns
"""


@click.command()
@click.option("--times", default=2, show_default=True, type=click.IntRange(min=1), help="Runs in a row.")
@click.option("--make", "made", type=click.Path(path_type=Path), metavar="DIR", help="Make results first.")
@click.option("--rows", is_flag=True, help="With --make: read all flows in one process, not ARGUMENTS.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def main(times: int, made: Path | None, rows: bool, as_json: bool, arguments: tuple[str, ...]) -> None:
    """Measure `refabric ARGUMENTS`, several times in a row."""
    if rows and not made:
        raise click.UsageError("--rows needs --make")
    if made:
        make(made, arguments[1:])
        arguments = (*arguments, "--results", str(made))
    costs = [cost([str(made)], READ_ROWS) if rows else cost(arguments) for _ in range(times)]
    if as_json:
        runs = [asdict(each) for each in costs]
        click.echo(json.dumps({"command": list(arguments), "runs": runs, "machine": machine()}))
        return
    for each in costs:
        click.echo(
            f"{each.seconds:8.2f} s, {each.cpu_s:8.2f} s of CPU time, {each.peak_mb:7.1f} MB at the peak, "
            f"exit code {each.exit_code}"
        )


if __name__ == "__main__":
    main()
