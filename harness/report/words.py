"""The report's sentences: what was found, what a suspect point means, what the terms mean. Pure.

A summary says what verdicts say, with what they rest on, and nothing that was not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from common.grammar import counted, joined
from harness.claims.published import Published, Source, known_as
from harness.claims.verdicts import AGREES, DIFFERS, Verdict, place
from harness.execute import attempts
from harness.report import in_short
from harness.report.points import point_label
from harness.results.load import Loaded
from harness.results.summary import Judged
from model.reasons import KINDS, OTHER, Kind, Reason
from model.result import Status

FAKE = "fake"
MANY = 8
"""More statements than this are too many for a summary: it then tells those that differ."""
SOURCES = {
    Source.TEXT: "stands in the paper or post in words or digits",
    Source.FIGURE: "read off a figure of the paper (about 0.5 % of the axis)",
    Source.RECALLED: "from the printed paper, its digits not checked again",
    Source.EXPECTED: "what must follow from how the comparison is made; nobody published it",
    Source.REFERENCE: "a reference simulator run at the same parameters; nobody published it",
    Source.THEORY: "what a formula gives for this very network; nobody published it as a measurement",
}
TERMS = (
    ("goodput", "Payload that the receiving kernel delivered in order during the measured seconds, headers "
     "and repetitions not counted. Of an MPTCP connection it is the data of the whole, not the sum of its "
     "subflows."),
    ("baseline", "A point with one TCP flow alone on the same links, from the first host to the last. Its "
     "goodput is what 100 % stands for, so that headers cancel."),
    ("percent of optimal", "Goodput of a flow in percent of the baseline. Where several flows must share a "
     "host's link, 100 % for each is out of reach by the workload itself."),
    ("subflow", "One of the TCP connections an MPTCP connection consists of. Each is hashed onto a path of "
     "its own; one subflow is plain TCP."),
    ("coupled, uncoupled", "Whether an MPTCP sender's subflows raise their windows together (LIA, OLIA, "
     "BALIA), to take no more of a shared queue than one TCP and to leave crowded paths, or each by itself. "
     "EWTCP weights each by their number alone."),
    ("PacketScatter", "Plain TCP whose every packet takes a path of its own, and whose hosts wait for those "
     "that come late before they resend them."),
    ("seed", "What the random choices of a point follow from: who talks to whom, and which paths are taken. "
     "All transports of a sweep share its seeds, so they see the same permutations."),
    ("Jain's index", "How evenly flows share: 1 when all get the same, 1/n when one of n gets everything."),
    ("lateness, p99", "How long after its due time a frame reached its host; the 99th percentile, in "
     "microseconds. The network's own timing is exact, delivery waits for the CPU."),
    ("clock stood still", "The fabric's clock waits while the machine stalls, so that no frame is late on "
     "it. Its seconds are those that goodput is counted in; the kernels' timers go on."),
    ("attempt", "One run of a point. What only the machine made suspect is run again after all others; the "
     "first attempt that is ok counts, never the best."),
    ("suspect", "The machine could not keep up, something asked for was not there, or the flows had not "
     "settled in the measured window, so the number says less about the transport than it seems to. It is "
     "shown, marked, and part of no mean."),
    ("failed", "The point has no number; the next run tries it again."),
    ("agrees, differs", "Whether the measured value is within the tolerance of the published one, or on the "
     "right side of a published bound. The tolerance and its reason stand in each row."),
)  # fmt: skip


@dataclass(frozen=True)
class Doubt:
    """A kind of reason and the points it was given for, each with its own words. `intended` sums up those of
    figures that overload the machine on purpose; empty without any."""

    kind: Kind
    points: tuple[str, ...]
    intended: str


def doubts(points: Iterable[Judged]) -> list[Doubt]:
    """Suspect points and baselines by the kind of their reasons; one with two kinds stands at both."""
    found: dict[str, list[tuple[Judged, Reason]]] = {}
    for judged in points:
        if judged.status is Status.SUSPECT:
            for reason in judged.reasons:
                found.setdefault(_kind(reason), []).append((judged, reason))
    return [_doubt(KINDS[kind], found[kind]) for kind in KINDS if kind in found]


def _kind(reason: Reason) -> str:
    return reason.kind if reason.kind in KINDS else OTHER


def _doubt(kind: Kind, given: Sequence[tuple[Judged, Reason]]) -> Doubt:
    meant = [f"{point_label(judged.spec)}: {reason}" for judged, reason in given if judged.as_intended]
    count = len({judged.point.name for judged, _ in given if judged.as_intended})
    told = f"As intended at {counted(count, 'point')} of figures that overload the machine"
    return Doubt(
        kind,
        tuple(f"{point_label(judged.spec)}: {reason}" for judged, reason in given if not judged.as_intended),
        f"{told}, for instance {meant[0]}." if meant else "",
    )


def cautions(points: Iterable[Judged]) -> list[Doubt]:
    """Points that are ok but for some of their metrics, by the kind of what casts doubt on those."""
    found: dict[str, list[str]] = {}
    for judged in (each for each in points if each.status is Status.OK):
        for caution in judged.cautions:
            line = f"{point_label(judged.spec)}: {in_short.doubted(caution)}: {caution}"
            found.setdefault(_kind(caution), []).append(line)
    return [Doubt(KINDS[kind], tuple(found[kind]), "") for kind in KINDS if kind in found]


def retried(points: Iterable[Judged]) -> list[str]:
    """Points that were run more than once, each with its attempts."""
    return [
        f"{point_label(judged.spec)}: {attempts.listed(judged.point.attempts)}"
        for judged in points
        if len(judged.point.attempts) > 1
    ]


def warning(points: Sequence[Judged]) -> str:
    """What must be said before everything else; empty when nothing must."""
    made_up = sum(judged.spec.engine == FAKE for judged in points)
    if not made_up:
        return ""
    some = f"{counted(made_up, 'point')} of this page were"
    whose = "Every number on this page was" if made_up == len(points) else some
    return f"{whose} made up by the fake engine, which tests refabric itself: evidence of nothing."


def summary(loaded: Loaded) -> list[str]:
    """Plain sentences on all figures together; what became of claims is told by those who show them."""
    verdicts = list(dict.fromkeys(v for shown in loaded.figures for v in shown.verdicts))
    known = list(dict.fromkeys(row for shown in loaded.figures for row in shown.figure.published))
    told = in_short.sentences(loaded.points, known)
    if not any(shown.claims for shown in loaded.figures):
        told += in_short.score(verdicts, "the table below")
    empty = [shown.figure.name for shown in loaded.figures if not shown.points]
    if empty:
        told.append(f"Nothing was run yet for {joined(empty)}.")
    if loaded.broken:
        broken = counted(len(loaded.broken), "point")
        told.append(f"{broken} could not be read (named below) and are left out.")
    return told


def findings(loaded: Loaded) -> list[tuple[str, str]]:
    """A verdict's word and a sentence on it, for every statement that was judged, each once; of many, those
    that differ."""
    verdicts = dict.fromkeys(v for shown in loaded.figures for v in shown.verdicts)
    judged = [v for v in verdicts if v.word in {AGREES, DIFFERS}]
    told = judged if len(judged) <= MANY else [v for v in judged if v.word == DIFFERS]
    return [(v.word, finding(v)) for v in told]


def finding(verdict: Verdict) -> str:
    """One statement and what became of it, in a sentence."""
    row = verdict.published
    return (
        f"{row.paper}, {row.workload.replace('_', ' ')} at {place(row)}: {row.words}. "
        f"Measured {measured(verdict)}, {known_as([row])} {published(verdict)}: {verdict.word}."
    )


def sources(rows: Iterable[Published]) -> dict[Source, str]:
    """What the sources of these rows mean."""
    used = {row.source for row in rows}
    return {source: about for source, about in SOURCES.items() if source in used}


def published(verdict: Verdict) -> str:
    """`about 95 % of optimal`, as bound or level."""
    bound = verdict.published.short().replace(">=", "\N{GREATER-THAN OR EQUAL TO}")
    return with_unit(bound, verdict.unit)


def measured(verdict: Verdict) -> str:
    """`83.7 % of optimal (1 seed)`, with the deviation between repetitions where there are
    several."""
    value = verdict.measured
    if value is None:
        return "-"
    metric = verdict.published.metric
    spread = "" if value.spread is None else f" \N{PLUS-MINUS SIGN} {value.spread:.2g}"
    repeats = counted(value.n, metric.repeats)
    return f"{with_unit(f'{metric.text(value.value)}{spread}', verdict.unit)} ({repeats})"


def tolerance(verdict: Verdict) -> str:
    """What still counts as agreeing, and why."""
    row = verdict.published
    amount = with_unit(f"{row.tolerance:g}", verdict.unit) if row.tolerance else "none"
    return f"{amount}: {row.because}" if row.because else amount


def with_unit(number: str, unit: str) -> str:
    """A number that a line break does not part from its unit."""
    return f"{number}\N{NO-BREAK SPACE}{unit}" if unit else number
