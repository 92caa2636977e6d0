"""The cost of refabric's congestion controls: CPU per packet compared with reno, and time per call.

    python benchmarks/congestion.py --k 4 --subflows 8 --rate 20 [--cc lia,olia] [--runs 3] [--json]

Runs alternate (reno, X, reno, X ...) on equal networks. `cpu_us_per_hop` is the busy time of all CPUs
(fabric, stacks, traffic source) in the measured window per packet-hop. `ratio` compares each run of X with
the reno run before it (median, minimum, maximum). One more run of each X has the kernel's statistics on
(sysctl kernel.bpf_stats_enabled) and gives `ns_per_call` and `calls_per_ack` of every callback. `ns_per_call`
includes the kernel's own measurement, about 50 ns per call. Needs root.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import statistics
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common.errors import HostUnfitError, RefabricError
from engines.emulation.congestion.libbpf import library
from engines.emulation.kernel.namespaces import sysctl_path
from engines.emulation.machine import bpf_support
from engines.emulation.outside import UNKEPT
from engines.emulation.point import EmulatedPoint
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from engines.provenance import machine
from model.congestion import BASELINE, CONGESTION_CONTROLS
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec

OURS = tuple(name for name, cc in CONGESTION_CONTROLS.items() if cc.bpf)
STATISTICS = "kernel.bpf_stats_enabled"
LOOK_S = 0.25
SLACK_S = 240.0
_INFO_BYTES, _NAME_AT, _TIME_AT = 216, 64, 192
"""struct bpf_prog_info (include/uapi/linux/bpf.h): up to recursion_misses; name; run_time_ns and run_cnt."""


@dataclass(frozen=True)
class Run:
    """One point. `calls`: number of runs and total ns by callback; empty without statistics."""

    cpu_us_per_hop: float
    goodput_mbps: float
    acks: int
    repairs: int
    calls: dict[str, tuple[int, int]]


def programs() -> dict[str, tuple[int, int]]:
    """Return calls and ns of every BPF program that this process has open, by name."""
    found: dict[str, tuple[int, int]] = {}
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if "bpf-prog" not in str(entry.readlink()):
                continue
        except FileNotFoundError:
            continue  # closed meanwhile, or the descriptor of this listing
        info = ctypes.create_string_buffer(_INFO_BYTES)
        size = ctypes.c_uint32(_INFO_BYTES)
        if library().call("bpf_obj_get_info_by_fd", int(entry.name), info, ctypes.byref(size)) != 0:
            continue  # closed meanwhile
        ns, calls = struct.unpack_from("QQ", info, _TIME_AT)
        found[info.raw[_NAME_AT : _NAME_AT + 16].rstrip(b"\0").decode()] = (calls, ns)
    return found


@contextmanager
def watched() -> Iterator[dict[str, tuple[int, int]]]:
    """Record the programs' statistics until the block ends, which unloads the programs."""
    last: dict[str, tuple[int, int]] = {}
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            last.update(programs())

    thread = threading.Thread(target=look, name="bpf statistics")
    thread.start()
    try:
        yield last
    finally:
        over.set()
        thread.join()


def inside(inside: Inside) -> int:
    """Run one point in the private namespaces and report a few numbers."""
    spec = RunSpec.from_json(inside.request["spec"])
    with watched() as calls:
        result, _ = EmulatedPoint(spec, UNKEPT, lambda _: None).run()
    metrics = result.metrics
    busy_s = metrics["cpu_busy_pct"] / 100 * len(os.sched_getaffinity(0)) * spec.seconds
    goodput = statistics.mean(flow.goodput_mbps for flow in result.flows)
    hop_us = 1e6 * busy_s / metrics["packet_hops"]
    run = Run(hop_us, goodput, int(metrics["cc_acks"]), int(metrics["cc_repairs"]), calls)
    inside.report(dataclasses.asdict(run))
    return 0


def measure(spec: RunSpec) -> Run:
    """Run the point once. Raises RefabricError."""
    runs: list[Any] = []
    spawn_inside(
        "benchmarks.congestion:inside",
        {"spec": spec.to_json()},
        deadline_s=spec.warmup_s + spec.seconds + SLACK_S,
        on_report=runs.append,
    )
    return Run(**runs[0])


@contextmanager
def kernel_statistics() -> Iterator[None]:
    """Turn on the kernel's timing of BPF programs during the context."""
    switch = sysctl_path(STATISTICS)
    before = switch.read_text()
    switch.write_text("1")
    try:
        yield
    finally:
        switch.write_text(before)


def compare(spec: RunSpec, runs: int) -> dict[str, Any]:
    """Compare one algorithm with reno: `runs` pairs of runs, then one run with statistics."""
    ratios, ours, theirs = [], [], []
    for _ in range(runs):
        base = dataclasses.replace(spec.transport, cc=BASELINE)
        theirs.append(measure(dataclasses.replace(spec, transport=base)).cpu_us_per_hop)
        found = measure(spec)
        ours.append(found.cpu_us_per_hop)
        ratios.append(ours[-1] / theirs[-1])
    with kernel_statistics():
        counted = measure(spec)
    total = sum(calls for calls, _ in counted.calls.values()) or 1
    acks = counted.calls.get("every_ack", (total, 0))[0]
    return {
        "cpu_us_per_hop": round(statistics.median(ours), 3),
        "reno_cpu_us_per_hop": round(statistics.median(theirs), 3),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_range": [round(min(ratios), 3), round(max(ratios), 3)],
        "goodput_mbps": round(counted.goodput_mbps, 3),
        "ns_per_call": {name: round(ns / n) for name, (n, ns) in counted.calls.items() if n},
        "calls_per_ack": {name: round(n / acks, 4) for name, (n, _) in counted.calls.items() if acks},
        "acks": counted.acks,
        "repairs": counted.repairs,
    }


@click.command()
@click.option("--k", default=4, show_default=True, help="Size k of the FatTree.")
@click.option("--subflows", default=8, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--rate", "rate_mbps", default=20.0, show_default=True, help="Link rate in Mb/s.")
@click.option("--cc", "names", default=",".join(OURS), show_default=True, help="Compare these with reno.")
@click.option("--warmup", "warmup_s", default=3.0, show_default=True, help="Warm-up of each run, in seconds.")
@click.option("--seconds", default=8.0, show_default=True, help="Measured time of each run, in seconds.")
@click.option("--runs", default=3, show_default=True, help="Pairs of runs per algorithm.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(names: str, runs: int, as_json: bool, **options: Any) -> None:
    """Measure the CPU cost of congestion controls and print it."""
    chosen = names.split(",")
    if unknown := sorted(set(chosen) - set(OURS)):
        raise click.UsageError(f"--cc {','.join(unknown)}: unknown; choose from: {', '.join(OURS)}")
    spec = RunSpec(
        link=LinkSpec(options["rate_mbps"]),
        topology=TopologySpec("fat_tree", {"k": options["k"]}),
        traffic="native",
        warmup_s=options["warmup_s"],
        seconds=options["seconds"],
    )
    try:
        if not bpf_support().ok:
            raise HostUnfitError(bpf_support().text)
        with emulation_lock(wait_s=60.0):
            result = {
                name: compare(
                    dataclasses.replace(spec, transport=TransportSpec(options["subflows"], name)),
                    max(1, runs),
                )
                for name in chosen
            }
    except RefabricError as error:
        click.echo(f"congestion: {error}", err=True)
        sys.exit(error.exit_code)
    if as_json:
        head = {"benchmark": "congestion", **options, "runs": runs}
        click.echo(json.dumps({**head, **result, "machine": machine()}))
        return
    for name, row in result.items():
        click.echo("\n".join([name, *(f"  {key:20} {value}" for key, value in row.items())]))


if __name__ == "__main__":
    main()
