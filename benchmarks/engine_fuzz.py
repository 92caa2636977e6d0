"""Random small settings between simulated and real Linux hosts in virtual time: do flows get the same shares?

    python benchmarks/engine_fuzz.py [--settings 100] [--seed 1] [--processes 2] [--json]

Each setting is a network, a traffic matrix, a queue, a rate, delay, loss, marks and a number of subflows, all
drawn from the seed. It runs once on Linux (`--engine linux`, which needs `refabric kernel build`) and three
times in the simulator with Linux's stack, between which hosts' processing times differ by a hundredth, and
nothing else: the same flows on the same paths, with other draws.

* `distance`: mean distance of the sorted shares (Wasserstein 1), in percent of the mean goodput; `spread` is
  the largest distance between two of the simulator's runs;
* `rank`: Spearman's correlation of the flows' goodputs, where the simulator's own runs agree in rank.

A setting `agrees` if Linux is no farther from one of the simulator's runs than TOLERANCE_PCT and the spread
together.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common.errors import RefabricError
from engines.engine import Silent
from engines.registry import LINUX, SIMULATOR, make
from model.spec import LINUX as LINUX_STACK
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec

Goodputs = npt.NDArray[np.float64]
PROCESSING_FRAMES = (1.0, 0.99, 1.01)
WARMUP_PACKETS, WINDOW_PACKETS = 4000, 12_000
"""Full packets that a link sends: 5 s and 15 s at 10 Mb/s."""
TOLERANCE_PCT = 15.0
"""Of the mean goodput. Set before the runs: the engines' stacks differ in timers and in how hosts queue."""
RANKED_FROM = 0.7
"""Ranks say something if the simulator's own runs correlate by at least this."""
TOPOLOGIES = (
    TopologySpec("star", {"n": 4}), TopologySpec("star", {"n": 8}), TopologySpec("fat_tree", {"k": 4}),
    TopologySpec("fat_tree", {"k": 4}), TopologySpec("leaf_spine", {"leaves": 2, "spines": 2, "hosts": 4}),
)  # fmt: skip
MATRICES = (
    WorkloadSpec("one_to_one"), WorkloadSpec("random"), WorkloadSpec("stride", {"i": 1}),
    WorkloadSpec("hotspot", {"percent": 100, "spots": 1}), WorkloadSpec("one_to_several", {"clients": 2}),
)  # fmt: skip
QUEUES_PKTS = (5, 10, 20, 50, 100, 200, 500, 1000)
RATES_MBPS = (5.0, 10.0, 20.0)
DELAYS_US = (0.0, 0.0, 100.0, 1000.0, 5000.0)
LOSSES = (0.0, 0.0, 0.0, 0.001, 0.01)
SUBFLOWS = (1, 1, 2, 4, 8)


@dataclass(frozen=True)
class Agreement:
    """What one setting showed. `rank` is None where the simulator's own runs differ in rank."""

    setting: str
    flows: int
    mean_linux_mbps: float
    mean_simulated_mbps: float
    distance_pct: float
    spread_pct: float
    rank: float | None
    slowest_linux_pct: float
    slowest_simulated_pct: float

    @property
    def agrees(self) -> bool:
        return self.distance_pct <= TOLERANCE_PCT + self.spread_pct


def settings(count: int, seed: int) -> list[RunSpec]:
    """Return so many specs for Linux hosts."""
    rng = random.Random(seed)
    return [_drawn(rng, number + 1) for number in range(count)]


def _drawn(rng: random.Random, seed: int) -> RunSpec:
    queue_pkts, rate_mbps = rng.choice(QUEUES_PKTS), rng.choice(RATES_MBPS)
    marks = max(2, queue_pkts // 5) if rng.random() < 0.2 and queue_pkts >= 20 else 0
    subflows = rng.choice(SUBFLOWS)
    return RunSpec(
        LinkSpec(
            rate_mbps,
            rng.choice(DELAYS_US),
            queue_pkts=queue_pkts,
            nic_queue_pkts=queue_pkts,
            loss=rng.choice(LOSSES),
            ecn_pkts=marks,
        ),
        rng.choice(TOPOLOGIES),
        TransportSpec(subflows, "lia" if subflows > 1 else "reno"),
        rng.choice(MATRICES),
        engine=LINUX,
        traffic="native",
        warmup_s=round(WARMUP_PACKETS * 12_112 / rate_mbps / 1e6, 1),
        seconds=float(round(WINDOW_PACKETS * 12_112 / rate_mbps / 1e6)),
        seed=seed,
    )


def simulated(spec: RunSpec, processing_frames: float) -> RunSpec:
    """Return the same between simulated hosts."""
    stack = dataclasses.replace(LINUX_STACK, processing_frames=processing_frames)
    return dataclasses.replace(spec, engine=SIMULATOR, stack=stack)


def compared(spec: RunSpec) -> Agreement:
    """Run a setting in both engines. Raises RefabricError."""
    linux = _goodputs(spec)
    runs = [_goodputs(simulated(spec, frames)) for frames in PROCESSING_FRAMES]
    mean = np.mean(runs, axis=0)
    own = [_spearman(a, b) for a, b in itertools.combinations(runs, 2)]
    pairs = itertools.combinations(runs, 2)
    return Agreement(
        setting=_words(spec),
        flows=len(linux),
        mean_linux_mbps=float(linux.mean()),
        mean_simulated_mbps=float(mean.mean()),
        distance_pct=min(_distance_pct(linux, run) for run in runs),
        spread_pct=max(_distance_pct(a, b) for a, b in pairs),
        rank=_spearman(linux, mean) if len(linux) > 2 and min(own) >= RANKED_FROM else None,
        slowest_linux_pct=100 * float(linux.min() / linux.mean()),
        slowest_simulated_pct=100 * float(mean.min() / mean.mean()),
    )


def _goodputs(spec: RunSpec) -> Goodputs:
    engine = make(spec.engine)
    engine.check(spec)
    with tempfile.TemporaryDirectory() as raw:
        result = engine.run(spec, Silent(), Path(raw))
    return np.array([flow.goodput_mbps for flow in result.flows])


def _distance_pct(a: Goodputs, b: Goodputs) -> float:
    return 100 * float(np.abs(np.sort(a) - np.sort(b)).mean() / b.mean())


def _spearman(a: Goodputs, b: Goodputs) -> float:
    first, second = (np.argsort(np.argsort(each)) for each in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


def _words(spec: RunSpec) -> str:
    link, network = spec.link, spec.topology
    size = "-".join(str(value) for value in network.params.values())
    parts = [
        f"{network.kind} {size} {spec.workload.matrix}",
        f"{link.rate_mbps:g} Mb/s", f"queue {link.queue_pkts}", f"{link.delay_us:g} us",
        f"loss {100 * link.loss:g} %", f"ECN {link.ecn_pkts}", f"{spec.transport.subflows} subflows",
        f"seed {spec.seed}",
    ]  # fmt: skip
    return ", ".join(parts)


def attempted(spec: RunSpec) -> Agreement | str:
    """Return the agreement, or what went wrong."""
    try:
        return compared(spec)
    except RefabricError as error:
        return f"{_words(spec)}: {error}"


def line(found: Agreement) -> str:
    """Return a row of the table."""
    rank = "    -" if found.rank is None else f"{found.rank:5.2f}"
    return (
        f"{'ok ' if found.agrees else 'OFF'} {found.distance_pct:6.1f} {found.spread_pct:6.1f} {rank} "
        f"{found.mean_linux_mbps:6.2f} {found.mean_simulated_mbps:6.2f} {found.slowest_linux_pct:5.0f} "
        f"{found.slowest_simulated_pct:5.0f}  {found.setting}"
    )


@click.command()
@click.option(
    "--settings", "count", default=100, show_default=True, type=click.IntRange(1, 10_000),
    help="Draw so many settings.",
)  # fmt: skip
@click.option("--seed", default=1, show_default=True, type=int, help="Draw them from this seed.")
@click.option(
    "--processes", default=2, show_default=True, type=click.IntRange(1, 64), help="Run so many at once."
)
@click.option("--json", "as_json", is_flag=True, help="Print one object for each setting.")
def main(count: int, seed: int, processes: int, as_json: bool) -> None:
    """Compare the engines on random settings."""
    if not as_json:
        print("    dist % spread  rank  Linux   sim. slowest % of mean: Linux, simulated")
    found: list[Agreement] = []
    with ProcessPoolExecutor(processes) as pool:
        for one in pool.map(attempted, settings(count, seed)):
            if isinstance(one, str):
                print(f"--- {one}", flush=True)
                continue
            found.append(one)
            text = json.dumps(dataclasses.asdict(one) | {"agrees": one.agrees}) if as_json else line(one)
            print(text, flush=True)
    print(summary(found), file=sys.stderr if as_json else sys.stdout)


def summary(found: Sequence[Agreement]) -> str:
    """Return one line over all settings."""
    if not found:
        return "nothing was compared"
    ranks = [one.rank for one in found if one.rank is not None]
    return (
        f"{sum(one.agrees for one in found)} of {len(found)} agree; median distance "
        f"{statistics.median(one.distance_pct for one in found):.1f} %, median spread "
        f"{statistics.median(one.spread_pct for one in found):.1f} %, median rank correlation "
        f"{statistics.median(ranks) if ranks else float('nan'):.2f} of {len(ranks)}"
    )


if __name__ == "__main__":
    main()
