"""noise: the effect of CPU stalls on results, by the lateness of packets relative to their delay.

CPUs stall at random so that the 99th percentile of lateness is 0.2 to 50 ms: the CPU of the fabric core,
those of the hosts, or all. Every point is compared with the quiet point of the same setting and seed. The
limits beyond which a point is suspect come from this study (docs/fidelity.md).

subflow-idle: subflows that have nothing to send while other subflows of their connection hold unsent data.

The upstream kernel's packet scheduler assigns data to a subflow long before it is sent. The figure measures
what that costs on a FatTree, and what settings of the kernel change: send buffers, limits on unsent data, the
size of writes, and the pacing rates that the scheduler uses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engines.registry import SIMULATED_HOSTS, SIMULATOR
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import SweepOptions, on_real_hosts
from harness.plan.sweeps import fat_trees, points_on
from model.congestion import BASELINE
from model.noise import QUIET, stalls_of
from model.spec import (
    CLOCKS,
    LINUX,
    OF_ALL,
    OF_FABRIC,
    OF_HOSTS,
    NoiseSpec,
    RunSpec,
    SamplingSpec,
    Settings,
    WorkloadSpec,
)
from model.tuning import CAPPED_RESERVE, KERNELS_OWN, NOTSENT_LOWAT, RESERVE, WMEM

NOISE_NAME = "noise"
SUBFLOWS = (1, 8)
PLACES = (OF_FABRIC, OF_HOSTS, OF_ALL)
P99_MS = (2.0, 5.0, 10.0, 20.0, 50.0)
FAST_MBPS, FASTER = 100.0, 5
"""Points with faster links run for a fifth of the time. They have ten times as many packets per second, but
no more stalls."""
GAPS_MS = {10.0: 2000, FAST_MBPS: 200}
"""Mean time between short flows of a host, by link rate: ten times as long at a tenth of the rate."""


@dataclass(frozen=True)
class Case:
    """A network and the lateness to cause in it."""

    rate_mbps: float
    queue_pkts: int
    delay_us: float
    p99_ms: tuple[float, ...]


CASES = (
    Case(10.0, 100, 0.0, P99_MS),
    Case(10.0, 20, 0.0, P99_MS),
    Case(10.0, 100, 1000.0, P99_MS),
    Case(10.0, 20, 1000.0, P99_MS),
    Case(FAST_MBPS, 100, 0.0, (2.0, 5.0, 20.0)),
    Case(FAST_MBPS, 20, 1000.0, (0.2, 0.5, 1.0, 2.0, 5.0, 20.0)),
)
"""In the last case propagation takes longer than a full queue."""
SHORT_CASES = (CASES[0], CASES[1], CASES[4])
BRIEF = (Case(10.0, 100, 0.0, (5.0, 50.0)),)
REAL_STALLS = (200.0, 2.0, 20.0)
"""Stalls for real hosts: mean interval, shortest and longest duration in ms."""


def _long(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    return _points(options, rate_of, CASES)


def _short(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the same with short flows beside long ones; short flows start at a rate proportional to the
    links'."""
    return [_paced(spec) for spec in _points(options, rate_of, SHORT_CASES)]


def _paced(spec: RunSpec) -> RunSpec:
    gap_ms = GAPS_MS[FAST_MBPS] if spec.link.rate_mbps == FAST_MBPS else GAPS_MS[10.0]
    params = {**spec.workload.params, "gap_ms": gap_ms}
    return dataclasses.replace(spec, workload=WorkloadSpec(spec.workload.matrix, params))


def _points(options: SweepOptions, rate_of: RateOf, cases: Iterable[Case]) -> list[RunSpec]:
    """Return quiet points and points with stalls: of all `cases` if simulated, else of the options'
    network."""
    if options.profile.brief:
        options = dataclasses.replace(options, seeds=options.seeds[:1])
        cases = BRIEF
    quiet = points_on(fat_trees, _transports)(options, rate_of)
    if SIMULATOR not in options.engines:
        return [point for spec in quiet for point in _real(spec)]
    return [point for case in cases for spec in quiet for point in _simulated(spec, case)]


def _transports(options: SweepOptions) -> list[Settings]:
    """Return TCP, and MPTCP under what the options choose."""
    tcp = {"transport.cc": BASELINE}
    return [{**(tcp if n == 1 else {}), "transport.subflows": n, "stack": LINUX} for n in options.subflows]


def _simulated(spec: RunSpec, case: Case) -> list[RunSpec]:
    link = dataclasses.replace(
        spec.link,
        rate_mbps=case.rate_mbps,
        queue_pkts=case.queue_pkts,
        nic_queue_pkts=case.queue_pkts,
        delay_us=case.delay_us,
    )
    part = FASTER if case.rate_mbps >= FAST_MBPS else 1
    spec = dataclasses.replace(spec, link=link, seconds=spec.seconds / part, warmup_s=spec.warmup_s / part)
    noises = (QUIET, *(stalls_of(where, p99_ms) for p99_ms in case.p99_ms for where in PLACES))
    return [dataclasses.replace(spec, noise=noise) for noise in noises]


def _real(spec: RunSpec) -> list[RunSpec]:
    noises = (QUIET, *(NoiseSpec(where, *REAL_STALLS) for where in PLACES))
    return [dataclasses.replace(spec, noise=noise, clock=clock) for clock in CLOCKS for noise in noises]


_OPTIONS = ("k", "engine", "seconds", "warmup", "seed", "seeds", "profile", "subflows", "cc")
_DEFAULTS: Settings = {
    "k": (4,), "workload": ("one_to_one",), "transport.subflows": SUBFLOWS, "engine": (SIMULATOR,),
    "link.rate_mbps": 10.0, "warmup_s": 10.0, "seconds": 40.0, "seeds": 6, "paper.seconds": 120.0,
}  # fmt: skip
_REAL = on_real_hosts(_DEFAULTS, {
    "link.rate_mbps": 10.0, "warmup_s": 20.0, "seconds": 30.0, "seeds": None, "paper.seconds": None,
})  # fmt: skip
LONG = Figure(
    name=NOISE_NAME,
    title="Effect of CPU stalls on goodput, fairness and round-trip times",
    about=(
        "CPUs stall at random while long flows run. As long as deliveries are late by a small share of the "
        "time that packets spend in queues, the bottleneck stays busy and goodput is unchanged. Beyond that "
        "queues run empty, round trips take longer and timeouts occur."
    ),
    defaults=_DEFAULTS,
    emulated=_REAL,
    topologies=fat_trees,
    points=_long,
    charts=("noise",),
    options=_OPTIONS,
)
SHORT = Figure(
    name=f"{NOISE_NAME}-short",
    title="Effect of CPU stalls on the completion times of short flows",
    about=(
        "CPUs stall at random while short flows run beside long ones. The chart shows the completion time of "
        "70 kB over plain TCP by the lateness of deliveries relative to the delay of a full queue."
    ),
    defaults={**_DEFAULTS, "workload": ("short_and_long",)},
    emulated={**_REAL, "workload": ("short_and_long",), "traffic": "native"},
    topologies=fat_trees,
    points=_short,
    charts=("noise",),
    options=_OPTIONS,
)
NOISE = Experiment(
    name=NOISE_NAME,
    title="Effect of lateness and CPU stalls on results, simulated and with real hosts",
    folder=NOISE_NAME,
    figures=(LONG,),
    shared_options=_OPTIONS,
)
COMPLETIONS = Experiment(
    name=SHORT.name,
    title=SHORT.title,
    folder=SHORT.name,
    figures=(SHORT,),
    shared_options=_OPTIONS,
)


IDLE_NAME = "subflow-idle"
PACING = ("net.ipv4.tcp_pacing_ca_ratio", "net.ipv4.tcp_pacing_ss_ratio")
TUNINGS = (
    {"transport.sysctls": KERNELS_OWN},
    {"transport.sysctls": RESERVE},
    {"transport.sysctls": CAPPED_RESERVE},
    {"transport.sysctls": {WMEM: "1048576 16384 4194304"}},
    {"transport.sysctls": {WMEM: "4096 1048576 4194304"}},
    {"transport.sysctls": {**KERNELS_OWN, NOTSENT_LOWAT: "16384"}},
    {"transport.sysctls": KERNELS_OWN, "transport.write_bytes": 4096},
    {"transport.sysctls": {**KERNELS_OWN, **dict.fromkeys(PACING, "100")}},
)
BUFFERED = 8 * LINUX.subflow_buffer
"""Segments that eight simulated subflows hold at most."""
SIMULATED_TUNINGS = tuple(
    {"stack": replace(LINUX, send_buffer=segments)}
    for segments in (BUFFERED // 2, BUFFERED, 2 * BUFFERED, BUFFERED + LINUX.send_buffer)
)
"""Send buffers of half of BUFFERED, of BUFFERED, of twice that, and of BUFFERED plus Linux's send buffer."""


def _tunings(options: SweepOptions) -> Sequence[Settings]:
    """Return the settings that hosts of the engine have."""
    return SIMULATED_TUNINGS if SIMULATED_HOSTS.issuperset(options.engines) else TUNINGS


SUBFLOW_IDLE = Experiment(
    name=IDLE_NAME,
    title="Idle subflows: the packet scheduler and the tuning of end hosts",
    folder=IDLE_NAME,
    figures=(
        Figure(
            name=IDLE_NAME,
            title="Idle subflows",
            about=(
                "The kernel assigns data to a subflow long before it is sent. When the slowest subflow "
                "delays a connection's data, the send buffer fills and the fast subflows have nothing to "
                "send. How long they are idle depends on the tuning of the hosts, and so does goodput."
            ),
            defaults={
                "k": (4,),
                "workload": ("one_to_one",),
                "transport.subflows": (8,),
                "sampling": SamplingSpec(sockets_ms=50),
            },
            topologies=fat_trees,
            points=points_on(fat_trees, _tunings),
            charts=("subflow_idle",),
        ),
    ),
)
