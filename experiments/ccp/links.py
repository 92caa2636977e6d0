"""ccp-links: one flow on a fixed link, a cellular link and one that loses packets, as in the paper's figure.

Parameters are those of the authors' code: 10 ms each way; 96 Mb/s with 160 packets; an LTE trace with 100
packets; 96 Mb/s with a random loss of 0.01 % and an unlimited queue. We may not ship their trace. A synthetic
one that fits its description replaces it (model/links.py), a different one for each seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ccp.names import PREFIX
from engines.registry import SIMULATOR
from experiments.ccp.network import LINK, bottleneck, compared
from experiments.ccp.statements import NEARLY
from harness.experiment import Figure, RateOf
from harness.options.options import Defaults, SweepOptions
from model.links import CELL, DROP, FIXED, LINK_KINDS, LTE
from model.spec import LinkSpec, RunSpec, SamplingSpec

CCS = ("reno", f"{PREFIX}reno", "cubic", f"{PREFIX}cubic")
SEEDS = 6
DEFAULTS: Defaults = replace(
    LINK, warmup_s=5.0, seconds=60.0, seeds=SEEDS, engines=(SIMULATOR,), sampling=SamplingSpec()
)


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
    return name == "queue_pkts" and link.queue_pkts != DEFAULTS.queue_pkts


def by_link(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return every congestion control on every kind of link; with --link-trace only on that link."""
    points = compared(*CCS)(options, rate_of)
    if options.base.link.trace:
        return points
    return [replace(point, link=on(point.link, kind, point.seed)) for kind in LINK_KINDS for point in points]


FIGURE = Figure(
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
