"""Detection of flows that deliver nothing although frames are due. Pure.

Congestion slows a flow but does not stop it. Two cases look alike at the application. No subflow of a
*stalled* flow delivers anything. Subflows of a *waiting* flow do, behind a gap: MPTCP delivers in order, and
the data at the front is on a subflow that takes seconds to send it (docs/experiments/subflow-idle.md). A
stalled flow makes the run fail; a waiting flow is a valid result.
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
"""Minimum fair share, in frames, for judging a flow. With less, a few lost retransmissions in a row suffice:
TCP's timer alone then waits for most of a minute."""


def silent_flows(
    flows: Sequence[PlannedFlow], samples: Sequence[Sample], seconds: float, link: LinkSpec
) -> list[int]:
    """Return flows that delivered nothing in the last `seconds` although frames were due to them.

    Returns none if the samples do not cover that time. Sized flows and flows without a socket are skipped.
    """
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


def stalled_and_waiting(silent: Sequence[int], acked_bytes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Split silent flows into stalled and waiting ones.

    `acked_bytes` holds, for every flow, the bytes that its subflows had acknowledged meanwhile.
    """
    stalled = [flow for flow in silent if not acked_bytes[flow]]
    return stalled, [flow for flow in silent if acked_bytes[flow]]


def due_frames(flows: Sequence[PlannedFlow], seconds: float, link: LinkSpec) -> list[float]:
    """Return how many full frames each flow could send in `seconds` if hosts shared their links evenly."""
    sent, received = Counter(f.src for f in flows), Counter(f.dst for f in flows)
    frames = seconds * link.rate_mbps * 1e6 / FRAME_BITS
    return [frames / max(sent[flow.src], received[flow.dst]) for flow in flows]


def stall_error(flows: Sequence[PlannedFlow], stalled: Sequence[int], seconds: float) -> StalledFlowError:
    """Return the error that names the flows that delivered nothing for `seconds`, and what to do."""
    first = flows[stalled[0]]
    return StalledFlowError(
        f"{len(stalled)} of {len(flows)} flows delivered nothing for {seconds:.0f} s although connected, "
        f"the first flow {first.flow} from {first.src} to {first.dst}: "
        "run the point again (docs/fidelity.md, stalled connections)"
    )
