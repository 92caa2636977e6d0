"""The report's sentences: results, reasons for suspicion, and the meaning of terms. Pure.

A summary repeats the verdicts and their basis; it adds nothing that was not measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from common.text import counted, joined
from harness.claims.own_settings import OwnSettings
from harness.claims.verdicts import AGREES, DIFFERS, Verdict, place
from harness.load import Loaded
from harness.metrics.measures import Measured
from harness.metrics.published import Published, Source, known_as
from harness.points.labels import point_label
from harness.report import in_short
from harness.results import run_json
from harness.results.point_results import Judged
from model.reasons import KINDS, OTHER, Kind, Reason
from model.result import Status

FAKE = "fake"
MANY = 8
"""With more statements than this, the summary shows only those that differ."""
SOURCES = {
    Source.TEXT: "in the paper or post, in words or digits",
    Source.FIGURE: "read off a figure of the paper (to about 0.5 % of the axis)",
    Source.RECALLED: "from the printed paper; its digits were not checked again",
    Source.EXPECTED: "follows from the comparison itself; not published",
    Source.REFERENCE: "another simulator at the same parameters; not published",
    Source.THEORY: "a formula for this network; not published as a measurement",
}
TERMS = (
    ("goodput", "Payload that the receiving kernel delivered in order during the measured seconds, without "
     "headers and retransmissions. For an MPTCP connection it is the data of the connection, not the sum of "
     "its subflows."),
    ("baseline", "A point with one TCP flow alone on the same links, from the first host to the last. Its "
     "goodput is 100 %, so headers cancel."),
    ("percent of optimal", "Goodput of a flow in percent of the baseline. If the workload makes several "
     "flows share a host's link, they cannot all reach 100 %."),
    ("subflow", "One of the TCP connections of an MPTCP connection. A hash chooses the path of each subflow. "
     "One subflow is plain TCP."),
    ("coupled, uncoupled", "Coupled subflows of an MPTCP sender increase their windows together (LIA, OLIA, "
     "BALIA): they take no more of a shared queue than one TCP flow, and they leave congested paths. "
     "Uncoupled subflows act independently. EWTCP weights each subflow by the number of subflows."),
    ("PacketScatter", "Plain TCP that sends every packet over another path. Its hosts wait for late packets "
     "before they retransmit."),
    ("seed", "The seed decides the random choices of a point: the pairs of hosts and the paths. All "
     "transports of a sweep share its seeds, so they run the same permutations."),
    ("Jain's index", "Fairness of the flows: 1 if all get the same, 1/n if one of n gets everything."),
    ("lateness, p99", "How late a frame reached its host, in microseconds; the 99th percentile. The timing "
     "inside the network is exact, but delivery waits for the CPU."),
    ("clock stood still", "The fabric's clock stops while the machine stalls, so frames are not late by this "
     "clock. Goodput is counted in its seconds. The kernels' timers go on."),
    ("attempt", "One run of a point. A point that only the machine made suspect is run again after all "
     "others. The first attempt that is ok counts, not the best one."),
    ("suspect", "The machine could not keep up, a requested feature was missing, or the flows had not "
     "settled in the measured window. The number may be wrong: it is shown and marked, and no mean includes "
     "it."),
    ("failed", "The point has no number. The next run tries it again."),
    ("agrees, differs", "Whether the measured value is within the tolerance of the published one, or on the "
     "right side of a published bound. Each row gives the tolerance and its reason."),
)  # fmt: skip


@dataclass(frozen=True)
class Doubt:
    """A kind of reason and the points that have it, each with its own words. `intended` summarises those of
    figures that overload the machine on purpose; empty if there are none."""

    kind: Kind
    points: tuple[str, ...]
    intended: str


def doubts(points: Iterable[Judged]) -> list[Doubt]:
    """Group suspect points and baselines by the kind of their reasons; a point with two kinds is in both."""
    found: dict[str, list[tuple[Judged, Reason]]] = {}
    for judged in points:
        if judged.status is Status.SUSPECT:
            for reason in judged.reasons:
                found.setdefault(_kind(reason), []).append((judged, reason))
    return [_doubt(KINDS[kind], found[kind]) for kind in KINDS if kind in found]


def _kind(reason: Reason) -> str:
    return reason.kind if reason.kind in KINDS else OTHER


def _doubt(kind: Kind, given: Sequence[tuple[Judged, Reason]]) -> Doubt:
    intended = [f"{point_label(judged.spec)}: {reason}" for judged, reason in given if judged.as_intended]
    count = len({judged.point.name for judged, _ in given if judged.as_intended})
    head = f"As intended at {counted(count, 'point')} of figures that overload the machine"
    return Doubt(
        kind,
        tuple(f"{point_label(judged.spec)}: {reason}" for judged, reason in given if not judged.as_intended),
        f"{head}, for instance {intended[0]}." if intended else "",
    )


def cautions(points: Iterable[Judged]) -> list[Doubt]:
    """Group the ok points with doubtful metrics by the kind of the doubt."""
    found: dict[str, list[str]] = {}
    for judged in (each for each in points if each.status is Status.OK):
        for caution in judged.cautions:
            line = f"{point_label(judged.spec)}: {in_short.doubted(caution)}: {caution}"
            found.setdefault(_kind(caution), []).append(line)
    return [Doubt(KINDS[kind], tuple(found[kind]), "") for kind in KINDS if kind in found]


def retried(points: Iterable[Judged]) -> list[str]:
    """Return the points that were run more than once, each with its attempts."""
    return [
        f"{point_label(judged.spec)}: {run_json.list_attempts(judged.point.attempts)}"
        for judged in points
        if len(judged.point.attempts) > 1
    ]


def warning(points: Sequence[Judged]) -> str:
    """Return the warning at the head of the page; empty if there is none."""
    fake = sum(judged.spec.engine == FAKE for judged in points)
    if not fake:
        return ""
    some = f"{counted(fake, 'point')} of this page were"
    which = "Every number on this page was" if fake == len(points) else some
    return f"{which} made up by the fake engine, which tests refabric itself. They are not evidence."


def summary(loaded: Loaded) -> list[str]:
    """Return plain sentences on all figures together; claims have sentences of their own."""
    verdicts = list(dict.fromkeys(v for shown in loaded.figures for v in shown.verdicts))
    sentences = in_short.sentences(loaded.points, OwnSettings(shown.figure for shown in loaded.figures))
    if not any(shown.claims for shown in loaded.figures):
        sentences += in_short.score(verdicts, "the table below")
    empty = [shown.figure.name for shown in loaded.figures if not shown.points]
    if empty:
        sentences.append(f"Nothing was run yet for {joined(empty)}.")
    if loaded.broken:
        broken = counted(len(loaded.broken), "point")
        sentences.append(f"{broken} could not be read (named below) and are left out.")
    return sentences


def findings(loaded: Loaded) -> list[tuple[str, str]]:
    """A verdict's word and a sentence on it, for every statement that was judged, each once; of many, those
    that differ."""
    verdicts = dict.fromkeys(v for shown in loaded.figures for v in shown.verdicts)
    judged = [v for v in verdicts if v.word in {AGREES, DIFFERS}]
    chosen = judged if len(judged) <= MANY else [v for v in judged if v.word == DIFFERS]
    return [(v.word, finding(v)) for v in chosen]


def finding(verdict: Verdict) -> str:
    """Return one statement and its verdict in a sentence."""
    row = verdict.published
    return (
        f"{row.paper}, {row.workload.replace('_', ' ')} at {place(row)}: {row.words}. "
        f"Measured {measured(verdict)}, {known_as([row])} {published(verdict)}: {verdict.word}."
    )


def sources(rows: Iterable[Published]) -> dict[Source, str]:
    """Return the meaning of the sources of these rows."""
    used = {row.source for row in rows}
    return {source: about for source, about in SOURCES.items() if source in used}


def published(verdict: Verdict) -> str:
    """Return the published bound or level: `about 95 % of optimal`."""
    bound = verdict.published.short().replace(">=", "\N{GREATER-THAN OR EQUAL TO}")
    return with_unit(bound, verdict.unit)


def measured(verdict: Verdict) -> str:
    """Return `83.7 % of optimal (1 seed)`, or `86 ± 0.35 % of optimal (95 %, 3 seeds)`; two seeds have no
    interval."""
    value = verdict.measured
    if value is None:
        return "-"
    metric = verdict.published.metric
    repeats = counted(value.n, metric.repeats)
    basis = repeats if value.half is None else f"95 %, {repeats}"
    return f"{with_unit(f'{metric.text(value.value)}{plus_minus(value)}', verdict.unit)} ({basis})"


def plus_minus(measured: Measured) -> str:
    """Return ` ± 0.35`, half the 95 % interval of the mean; empty without an interval."""
    return "" if measured.half is None else f" \N{PLUS-MINUS SIGN} {measured.half:.2g}"


def tolerance(verdict: Verdict) -> str:
    """Return the tolerance and its reason."""
    row = verdict.published
    amount = with_unit(f"{row.tolerance:g}", verdict.unit) if row.tolerance else "none"
    return f"{amount}: {row.because}" if row.because else amount


def with_unit(number: str, unit: str) -> str:
    """Join a number and its unit so that no line break separates them."""
    return f"{number}\N{NO-BREAK SPACE}{unit}" if unit else number
