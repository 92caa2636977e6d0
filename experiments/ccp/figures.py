"""ccp: congestion control by an agent beside the kernel's, after Narayan et al., SIGCOMM 2018.

The bottleneck is the one of the paper's fixed link: 96 Mb/s, 20 ms round trip, a queue of 160 packets.

ccp-links: one flow on a fixed link, a cellular link and one that loses packets, as in the paper's figure.

Parameters are those of the authors' code: 10 ms each way; 96 Mb/s with 160 packets; an LTE trace with 100
packets; 96 Mb/s with a random loss of 0.01 % and an unlimited queue. We may not ship their trace. A synthetic
one that fits its description replaces it (model/links.py), a different one for each seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ccp.names import PREFIX
from engines.registry import SIMULATOR
from experiments.ccp.completion import FIGURE as COMPLETION
from experiments.ccp.fidelity import FAIRNESS, FIDELITY
from experiments.ccp.incast import FIGURE as INCAST
from experiments.ccp.statements import LINK, NEARLY, bottleneck, compared
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import SweepOptions
from harness.plan.sweeps import points_on
from model.congestion import BASELINE
from model.links import CELL, DROP, FIXED, LINK_KINDS, LTE
from model.spec import AgentSpec, LinkSpec, RunSpec, SamplingSpec, Settings

CCS = ("reno", f"{PREFIX}reno", "cubic", f"{PREFIX}cubic")
SEEDS = 6
DEFAULTS: Settings = {
    **LINK, "engine": (SIMULATOR,),
    "warmup_s": 5.0, "seconds": 60.0, "seeds": SEEDS,
    "sampling": SamplingSpec(),
}  # fmt: skip


def on(link: LinkSpec, kind: str, seed: int) -> LinkSpec:
    """Return the link of this kind, one of LINK_KINDS."""
    changes: Mapping[str, Mapping[str, object]] = {
        FIXED: {},
        CELL: {"trace": f"{LTE}:{seed}", "queue_pkts": 100},
        DROP: {"loss": 0.0001, "queue_pkts": 0},
    }
    chosen = {name: value for name, value in changes[kind].items() if not _is_asked(link, name)}
    return replace(link, **chosen)  # type: ignore[arg-type]


def _is_asked(link: LinkSpec, name: str) -> bool:
    """Return whether the user chose the queue's length, which then applies to all kinds."""
    return name == "queue_pkts" and link.queue_pkts != DEFAULTS["link.queue_pkts"]


def by_link(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return every congestion control on every kind of link; with --link-trace only on that link."""
    points = compared(*CCS)(options, rate_of)
    if options.base.link.trace:
        return points
    return [replace(point, link=on(point.link, kind, point.seed)) for kind in LINK_KINDS for point in points]


BY_LINK = Figure(
    name="ccp-links",
    title="Throughput and delay on three kinds of links",
    about=(
        "One flow of Reno or CUBIC, in the kernel and in an agent, on a link of 96 Mb/s, on a made-up "
        "cellular link, and on one that loses packets at random. Each pair should be close together. The "
        "agent gets a report per round trip."
    ),
    defaults=DEFAULTS,
    topologies=bottleneck,
    points=by_link,
    charts=("by_link",),
    published=NEARLY,
    sized=False,
    relative=False,
)


NAME = "ccp"
DELAYS_US = (100.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0)


def by_delay(options: SweepOptions) -> list[Settings]:
    """Return the baseline, and each agent of --cc at every delay, or at the user's."""
    chosen = options.base.agent
    return [
        {"transport.cc": BASELINE},
        *(
            {"transport.cc": cc, "agent.delay_us": delay_us}
            for cc in options.ccs or (f"{PREFIX}reno", f"{PREFIX}cubic")
            if cc != BASELINE
            for delay_us in ([chosen.delay_us] if chosen != AgentSpec() else DELAYS_US)
        ),
    ]


FIGURES = (
    Figure(
        name="ccp-window",
        title="Window over time, CUBIC in an agent beside the kernel's",
        about=(
            "One flow fills a link of 96 Mb/s and 20 ms. CUBIC runs in the kernel, then as a Python program "
            "that gets a report per round trip and at once for losses. Both windows should have the same "
            "shape and mean."
        ),
        defaults=LINK,
        topologies=bottleneck,
        points=compared("cubic", f"{PREFIX}cubic"),
        charts=("windows_beside",),
        sized=False,
        relative=False,
    ),
    Figure(
        name="ccp-delay",
        title="What a slow agent does",
        about=(
            "The same link in the simulator. The agent answers reports after 0.1 to 100 ms. As long as this "
            "is short beside the round trip, Reno and CUBIC work as in the kernel; beyond it, more packets "
            "are lost before a reduction takes effect. The dotted line is Reno without an agent."
        ),
        defaults={**LINK, "engine": (SIMULATOR,)},
        topologies=bottleneck,
        points=points_on(bottleneck, by_delay),
        charts=("by_agent_delay",),
        sized=False,
        relative=False,
    ),
    BY_LINK,
    INCAST,
    COMPLETION,
    FIDELITY,
    FAIRNESS,
)
EXPERIMENT = Experiment(
    name=NAME,
    title="Congestion control by an agent beside the kernel's (SIGCOMM 2018)",
    folder=NAME,
    figures=FIGURES,
)
SINGLE = tuple(figure.alone(NAME) for figure in FIGURES)
