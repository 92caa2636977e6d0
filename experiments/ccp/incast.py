"""ccp-incast: fifty senders, one receiver and a round trip of 20 us, by the agent's reporting interval.

Simulated, as in the paper: flows of 10, 100 and 1000 packets at 10 and 40 Gb/s, and an agent whose answers
take 20 us. Agents are compared with Reno without an agent, which acts on every acknowledgement.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from analysis.completion import tail_ms
from analysis.quantities import Quantity
from ccp.names import PREFIX, is_agents
from engines.registry import SIMULATOR
from experiments.ccp.statements import CITATION, paired
from harness.experiment import Figure
from harness.metrics.measures import Estimate, Subject, measured_over, ratio
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import SweepOptions
from harness.plan.sweeps import points_on
from harness.results.point_results import PointResult
from model.congestion import BASELINE
from model.result import under_test
from model.spec import AgentSpec, RunSpec, Settings, StackSpec, TopologySpec

SENDERS = 50
RATES_MBPS = (10_000.0, 40_000.0)
SIZES_PKTS = (10, 100, 1000)
REPORTS_US = (10, 50, 100, 200, 300, 500)
DELAY_US = 5.0
"""One-way delay of each of the two links. The round trip of 20 us crosses four links."""
ANSWER_US = 20.0
QUEUE_PKTS = 1000
"""The paper does not give the switch's buffer. The initial windows are 500 packets together. They would
overflow a smaller buffer, and the minimum RTO would then determine the result."""
STACK = StackSpec(min_rto_ms=10.0, delayed_ack_ms=0.0)
"""The minimum RTO is also an assumption. A timeout is long compared with all other delays."""
SEEDS = 6
DEFAULTS: Settings = {
    "workload": tuple(f"incast:{packets}" for packets in SIZES_PKTS), "transport.subflows": (1,),
    "engine": (SIMULATOR,),
    "link.rate_mbps": RATES_MBPS, "warmup_s": 0.0, "seconds": 2.0, "seeds": SEEDS, "smoke.seconds": 2.0,
    "link.queue_pkts": QUEUE_PKTS, "link.delay_us": DELAY_US,
}  # fmt: skip
_APART = ("transport.cc", "agent", "workload", "link.rate_mbps")


def star(options: SweepOptions) -> list[TopologySpec]:
    """Return one switch with fifty senders and a receiver, or a fifth of them in a brief run."""
    return [TopologySpec("star", {"n": (SENDERS // 5 if options.profile.brief else SENDERS) + 1})]


def by_interval(options: SweepOptions) -> list[Settings]:
    """Return Reno without an agent, and each agent of --cc at every interval, or at the user's."""
    chosen = options.base.agent
    delay_us = ANSWER_US if chosen.delay_us == AgentSpec().delay_us else chosen.delay_us
    return [
        {"transport.cc": BASELINE, "stack": STACK, "agent": AgentSpec()},
        *(
            {"transport.cc": cc, "stack": STACK, "agent.delay_us": delay_us, "agent.report_us": report_us}
            for cc in options.ccs or (f"{PREFIX}reno",)
            if is_agents(cc)
            for report_us in ((chosen.report_us,) if chosen.report_us else REPORTS_US)
        ),
    ]


def setting(spec: RunSpec) -> RunSpec:
    return spec.neutral(*_APART)


def tail_of(point: PointResult) -> float | None:
    """Return the completion time of the last flow in ms; None unless all flows completed."""
    return tail_ms(under_test(point.flows))


@functools.cache
def over_every_ack(gbps: int, report_us: int) -> Metric:
    """Return a metric: the tail completion time with an agent over that of Reno without one, per seed."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        chosen = [p for p in points if _is_of(p.spec, subject, 1000.0 * gbps)]
        asked = AgentSpec(ANSWER_US, 0.0, report_us)
        pairs = paired(
            [p for p in chosen if not is_agents(p.spec.transport.cc) or p.spec.agent == asked], BASELINE
        )
        return measured_over((ratio(tail_of(a), tail_of(b)), (a, b)) for a, b in pairs)

    return Metric(
        Quantity(
            f"tail_over_every_ack_{gbps}g_{report_us}us",
            "x Reno's",
            f"tail completion time at {gbps} Gb/s with a report every {report_us} us over Reno's without an "
            "agent",
        ),
        over=measure,
        setting=setting,
    )


def _is_of(spec: RunSpec, subject: Subject, rate_mbps: float) -> bool:
    packets = int(subject.workload.partition(":")[2])
    return (
        subject.is_on(spec.topology)
        and spec.link.rate_mbps == rate_mbps
        and spec.workload.matrix == "incast"
        and spec.workload.params.get("packets", 100) == packets
    )


_AT_10_GBPS = "10 Gb/s: tail completion within 15 % (caption 20 %) of control on every ACK"
_AT_40_GBPS = (
    "40 Gb/s: 100-packet flows within 10 % at 100 us and more than twice as long beyond 200 us, 10 and 1000 "
    "packets unaffected"
)


def _row(
    gbps: int, packets: int, report_us: int, relation: Relation, value: float, within: float
) -> Published:
    words = {
        10: "at 10 Gb/s the tail completion is within 15 % of control on every ACK",
        40: f"at 40 Gb/s flows of {packets} packets "
        + ("take more than twice as long beyond 200 us" if value > 1 else "are unaffected, or within 10 %"),
    }[gbps]
    because = {
        10: "the text's 15 %; the caption says 20", 40: "the 10 % of the text" if value == 1 else "a bound",
    }[gbps]  # fmt: skip
    quote = _AT_10_GBPS if gbps == 10 else _AT_40_GBPS
    return Published(
        over_every_ack(gbps, report_us), "star", SENDERS + 1, f"incast:{packets}", 1, relation, value,
        Source.TEXT, f"{words} ({packets} packets, a report every {report_us} us)", "SIGCOMM'18", CITATION,
        within, because, sentence=words, caveat="The paper gives neither the switch's buffer nor the RTO.",
        section="Low round-trip times", quote=quote,
    )  # fmt: skip


STATEMENTS = (
    *(_row(10, packets, us, Relation.ABOUT, 1.0, 0.15) for packets in SIZES_PKTS for us in (10, 100, 500)),
    *(_row(40, packets, us, Relation.ABOUT, 1.0, 0.1) for packets in (10, 1000) for us in (100, 500)),
    _row(40, 100, 100, Relation.ABOUT, 1.0, 0.1),
    *(_row(40, 100, us, Relation.ABOVE, 2.0, 0.0) for us in (300, 500)),
)
FIGURE = Figure(
    name="ccp-incast",
    title="Incast at a low round-trip time, by the reporting interval",
    about=(
        "Fifty hosts send 10, 100 or 1000 packets to one host at once; the round trip is 20 us. An agent "
        "answers 20 us after a report. The curves are the completion time of the last flow over that of Reno "
        "without an agent, which acts on every acknowledgement."
    ),
    defaults=DEFAULTS,
    topologies=star,
    points=points_on(star, by_interval),
    charts=("by_report_interval",),
    published=STATEMENTS,
    sized=False,
    relative=False,
)  # fmt: skip
