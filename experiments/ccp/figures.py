"""ccp: congestion control by an agent beside the kernel's, after Narayan et al., SIGCOMM 2018.

The bottleneck is the one of the paper's fixed link: 96 Mb/s, 20 ms round trip, a queue of 160 packets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ccp.names import PREFIX
from engines.registry import SIMULATOR
from experiments.ccp.completion import FIGURE as COMPLETION
from experiments.ccp.fidelity import FAIRNESS, FIDELITY
from experiments.ccp.incast import FIGURE as INCAST
from experiments.ccp.links import FIGURE as BY_LINK
from experiments.ccp.network import LINK, bottleneck, compared
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import SweepOptions
from harness.plan.sweeps import Variant, points_on
from model.congestion import BASELINE
from model.spec import AgentSpec, RunSpec

NAME = "ccp"
DELAYS_US = (100.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0)


def by_delay(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the baseline, and each agent of --cc at every delay."""
    plain = points_on(bottleneck, [Variant(cc=BASELINE)])(options, rate_of)
    agents: Sequence[RunSpec] = compared(f"{PREFIX}reno", f"{PREFIX}cubic")(options, rate_of)
    return plain + [
        replace(spec, agent=replace(spec.agent, delay_us=delay_us))
        for spec in agents
        if spec.transport.cc != BASELINE
        for delay_us in ({spec.agent.delay_us} if spec.agent != AgentSpec() else DELAYS_US)
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
        defaults=replace(LINK, engines=(SIMULATOR,)),
        topologies=bottleneck,
        points=by_delay,
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
SINGLE = tuple(
    Experiment(name=figure.name, title=figure.title, folder=NAME, figures=(figure,)) for figure in FIGURES
)
