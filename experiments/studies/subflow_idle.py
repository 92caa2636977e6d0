"""subflow-idle: subflows that have nothing to send while other subflows of their connection hold unsent data.

The upstream kernel's packet scheduler assigns data to a subflow long before it is sent. The figure measures
what that costs on a FatTree, and what settings of the kernel change: send buffers, limits on unsent data, the
size of writes, and the pacing rates that the scheduler uses.
"""

from __future__ import annotations

from dataclasses import replace

from engines.registry import SIMULATED_HOSTS
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import Defaults, SweepOptions
from harness.plan.sweeps import Variant, fat_trees, points_on
from model.spec import LINUX, RunSpec, SamplingSpec
from model.tuning import CAPPED_RESERVE, KERNELS_OWN, NOTSENT_LOWAT, RESERVE, WMEM

NAME = "subflow-idle"
PACING = ("net.ipv4.tcp_pacing_ca_ratio", "net.ipv4.tcp_pacing_ss_ratio")
VARIANTS = (
    Variant(sysctls=KERNELS_OWN),
    Variant(sysctls=RESERVE),
    Variant(sysctls=CAPPED_RESERVE),
    Variant(sysctls={WMEM: "1048576 16384 4194304"}),
    Variant(sysctls={WMEM: "4096 1048576 4194304"}),
    Variant(sysctls={**KERNELS_OWN, NOTSENT_LOWAT: "16384"}),
    Variant(sysctls=KERNELS_OWN, write_bytes=4096),
    Variant(sysctls={**KERNELS_OWN, **dict.fromkeys(PACING, "100")}),
)
BUFFERED = 8 * LINUX.subflow_buffer
"""Segments that eight simulated subflows hold at most."""
SIMULATED = tuple(
    Variant(simulated=replace(LINUX, send_buffer=segments))
    for segments in (BUFFERED // 2, BUFFERED, 2 * BUFFERED, BUFFERED + LINUX.send_buffer)
)
"""Send buffers of half of BUFFERED, of BUFFERED, of twice that, and of BUFFERED plus Linux's send buffer."""


def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the points with the settings that hosts of the engine have."""
    chosen = SIMULATED if SIMULATED_HOSTS.issuperset(options.engines) else VARIANTS
    return points_on(fat_trees, chosen)(options, rate_of)


EXPERIMENT = Experiment(
    name=NAME,
    title="Idle subflows: the packet scheduler and the tuning of end hosts",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Idle subflows",
            about=(
                "The kernel assigns data to a subflow long before it is sent. When the slowest subflow "
                "delays a connection's data, the send buffer fills and the fast subflows have nothing to "
                "send. How long they are idle depends on the tuning of the hosts, and so does goodput."
            ),
            defaults=Defaults(
                ks=(4,), workloads=("one_to_one",), subflows=(8,), sampling=SamplingSpec(sockets_ms=50)
            ),
            topologies=fat_trees,
            points=points,
            charts=("subflow_idle",),
        ),
    ),
)
