"""Flows that deliver nothing although they should: congestion slows a flow, it does not stop it. Pure.

Two things look alike from outside. A *stalled* flow stands still: none of its subflows gets anything across.
A *waiting* one has subflows that do, behind a gap: MPTCP delivers in order, and what is in front was given to
a subflow that takes seconds for it (docs/subflow-idle.md). The first is no result, the second is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from common.errors import StalledFlowError
from engines.emulation.measure.observing import Sample
from fabric.plan import FRAME_BITS
from model.flows import PlannedFlow
from model.spec import LinkSpec

DUE_FRAMES = 200
"""A flow whose fair share of its hosts' links is less than this has an excuse: a few lost retransmissions
in a row, and TCP's timer alone waits for most of a minute."""


def silent_flows(
    flows: Sequence[PlannedFlow], samples: Sequence[Sample], seconds: float, link: LinkSpec
) -> list[int]:
    """Those that delivered nothing in the last `seconds`, if so much was sampled and frames were due to
    them; a flow whose socket has gone, or that has a size, is not judged here."""
    last = samples[-1]
    rounding_s = 0.001
    earlier = [sample for sample in samples if sample.t_s <= last.t_s - seconds + rounding_s]
    if not earlier:
        return []
    pairs = zip(flows, earlier[-1].received, last.received, due_frames(flows, seconds, link), strict=True)
    return [
        flow.flow
        for flow, before, after, due in pairs
        if before is not None and before == after and due >= DUE_FRAMES and not flow.size_bytes
    ]


def told_apart(silent: Sequence[int], acked_bytes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Of silent flows the stalled and the waiting ones; `acked_bytes` is what the subflows of each flow,
    silent or not, were acknowledged meanwhile."""
    stalled = [flow for flow in silent if not acked_bytes[flow]]
    return stalled, [flow for flow in silent if acked_bytes[flow]]


def due_frames(flows: Sequence[PlannedFlow], seconds: float, link: LinkSpec) -> list[float]:
    """Full frames each flow could send in `seconds` if its hosts' flows shared their links alike."""
    sent, received = Counter(f.src for f in flows), Counter(f.dst for f in flows)
    frames = seconds * link.rate_mbps * 1e6 / FRAME_BITS
    return [frames / max(sent[flow.src], received[flow.dst]) for flow in flows]


def stall_error(flows: Sequence[PlannedFlow], stalled: Sequence[int], seconds: float) -> StalledFlowError:
    """Which flows stood still for `seconds`, and what to do."""
    first = flows[stalled[0]]
    return StalledFlowError(
        f"{len(stalled)} of {len(flows)} flows delivered nothing for {seconds:.0f} s although connected, "
        f"the first flow {first.flow} from {first.src} to {first.dst}: "
        "run the point again (docs/fidelity.md, stalled connections)"
    )
