"""The report's sentences: what was found, what a suspect point means, what the terms mean. Pure.

A summary says what verdicts say, with what they rest on, and nothing that was not measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engines.result import Status
from experiments.gather import Gathered
from experiments.published import Published, Source, known_as
from experiments.quantities import QUANTITIES
from experiments.reference import is_reference
from experiments.report_parts_points import point_label
from experiments.summary import REFERENCE_SUSPECT, Judged
from experiments.verdicts import AGREES, DIFFERS, NOT_MEASURED, SUSPECT, Verdict, place

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
    ("reference", "A point with one TCP flow alone on the same links, from the first host to the last. Its "
     "goodput is what 100 % stands for, so that headers cancel."),
    ("percent of optimal", "Goodput of a flow in percent of the reference. Where several flows must share a "
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
    ("suspect", "The machine could not keep up, or something asked for was not there, so the number says "
     "less about the transport than it seems to. It is shown, marked, and part of no mean."),
    ("failed", "The point has no number; the next run tries it again."),
    ("agrees, differs", "Whether the measured value is within the tolerance of the published one, or on the "
     "right side of a published bound. The tolerance and its reason stand in each row."),
)  # fmt: skip


@dataclass(frozen=True)
class Explanation:
    """A kind of reason: texts that begin with `start` and contain `part` are of this kind."""

    start: str
    part: str
    title: str
    means: str
    todo: str

    def covers(self, reason: str) -> bool:
        return reason.startswith(self.start) and self.part in reason


_LESS = (
    "Give a lower `--rate`, a smaller k or fewer subflows, and leave the machine to the run alone; "
    "`--rate auto` chooses a rate with CPU to spare."
)
_MPTCP = "Run the point again; if it stays, `sudo .venv/bin/refabric doctor` tests MPTCP on this kernel."
EXPLANATIONS = (
    Explanation("CPU:", "late or more", "Frames were delivered late",
                "More than one frame in 100 reached its host later than one packet time after it was due. "
                "Round-trip times were longer and burstier than the links asked for would make them; mean "
                "goodput usually changes little, but that is not known of this point.", _LESS),
    Explanation("CPU:", "no idle time", "The CPU was saturated",
                "No CPU time was left, so the stacks waited for the machine and not for the network. "
                "The number says how fast this machine is.", _LESS),
    Explanation("CPU:", "lost in", "Frames were lost outside the network's queues",
                "The machine dropped frames where the network asked for has no queue. TCP took that for "
                "congestion, so goodput is too low.", _LESS),
    Explanation("CPU:", "", "The machine could not keep up",
                "The number says more about the CPU than about the transport.", _LESS),
    Explanation("subflows:", "", "Subflows were missing",
                "Some flows had fewer subflows than asked for, so the number belongs to a transport "
                "between two of the chart's.", _MPTCP),
    Explanation("fallback:", "", "MPTCP fell back to TCP",
                "Some flows were plain TCP, which counts against MPTCP.", _MPTCP),
    Explanation("flows:", "", "Flows stood still",
                "Some flows delivered nothing while they were measured. They pull the mean down, and their "
                "share of the network went to others.", _LESS),
    Explanation("congestion control:", "", "Another congestion control was in force",
                "Not all flows ran what was asked for.",
                "Choose one this kernel has with --cc; `sysctl net.ipv4.tcp_available_congestion_control` "
                "lists them."),
    Explanation(REFERENCE_SUSPECT, "", "The reference itself is suspect",
                "What 100 % stands for was measured on a machine that could not keep up. The goodput in Mb/s "
                "stands; the percentages may be too high.", _LESS),
)  # fmt: skip
OTHER = Explanation(
    "", "", "Another reason", "The engine's own words stand with each point.", "Run it again."
)


@dataclass(frozen=True)
class Doubt:
    """A kind of reason and the points it was given for, each with its own words. `intended` sums up those of
    figures that overload the machine on purpose; empty without any."""

    kind: Explanation
    points: tuple[str, ...]
    intended: str


def doubts(points: Iterable[Judged]) -> list[Doubt]:
    """Suspect points by the kind of their reasons; a point with two kinds stands at both."""
    found: dict[Explanation, list[tuple[Judged, str]]] = {}
    for judged in points:
        if judged.status is Status.SUSPECT:
            for reason in judged.reasons:
                found.setdefault(_kind(reason), []).append((judged, reason))
    return [_doubt(kind, found[kind]) for kind in (*EXPLANATIONS, OTHER) if kind in found]


def _doubt(kind: Explanation, given: Sequence[tuple[Judged, str]]) -> Doubt:
    meant = [f"{point_label(judged.spec)}: {reason}" for judged, reason in given if judged.as_intended]
    count = len({judged.point.name for judged, _ in given if judged.as_intended})
    told = f"As intended at {_points(count)} of figures that overload the machine"
    return Doubt(
        kind,
        tuple(f"{point_label(judged.spec)}: {reason}" for judged, reason in given if not judged.as_intended),
        f"{told}, for instance {meant[0]}." if meant else "",
    )


def _kind(reason: str) -> Explanation:
    return next((kind for kind in EXPLANATIONS if kind.covers(reason)), OTHER)


def warning(points: Sequence[Judged]) -> str:
    """What must be said before everything else; empty when nothing must."""
    made_up = sum(judged.spec.engine == FAKE for judged in points)
    if not made_up:
        return ""
    whose = (
        "Every number on this page was" if made_up == len(points) else f"{_points(made_up)} of this page were"
    )
    return f"{whose} made up by the fake engine, which tests refabric itself: evidence of nothing."


def summary(gathered: Gathered) -> list[str]:
    """Plain sentences on all figures together; what became of claims is told by those who show them."""
    points = [judged for judged in gathered.points if not is_reference(judged.spec)]
    verdicts = list(dict.fromkeys(v for shown in gathered.figures for v in shown.verdicts))
    score = [] if any(shown.claims for shown in gathered.figures) else [_score(verdicts)]
    empty = [shown.figure.name for shown in gathered.figures if not shown.points]
    sentences = [*score, _basis(points), *_states(points)]
    if empty:
        sentences.append(f"Nothing was run yet for {_and(empty)}.")
    if gathered.broken:
        sentences.append(f"{_points(len(gathered.broken))} could not be read (named below) and are left out.")
    return [sentence for sentence in sentences if sentence]


def findings(gathered: Gathered) -> list[tuple[str, str]]:
    """A verdict's word and a sentence on it, for every statement that was judged, each once; of many, those
    that differ."""
    verdicts = dict.fromkeys(v for shown in gathered.figures for v in shown.verdicts)
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
    digits = ".1f" if verdict.unit.startswith("%") else ".3g"
    spread = "" if value.spread is None else f" \N{PLUS-MINUS SIGN} {value.spread:.2g}"
    repeats = counted(value.n, QUANTITIES[verdict.published.quantity].repeats)
    return f"{with_unit(f'{value.value:{digits}}{spread}', verdict.unit)} ({repeats})"


def tolerance(verdict: Verdict) -> str:
    """What still counts as agreeing, and why."""
    row = verdict.published
    amount = with_unit(f"{row.tolerance:g}", verdict.unit) if row.tolerance else "none"
    return f"{amount}: {row.because}" if row.because else amount


def with_unit(number: str, unit: str) -> str:
    """A number that a line break does not part from its unit."""
    return f"{number}\N{NO-BREAK SPACE}{unit}" if unit else number


def _score(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return "No published statement belongs to these figures: there is nothing to agree with."
    kind = known_as(v.published for v in verdicts)
    count = {word: sum(v.word == word for v in verdicts) for word in (AGREES, DIFFERS, SUSPECT, NOT_MEASURED)}
    unjudged = [
        *([f"{_verb(count[SUSPECT], 'rest')} on suspect points, unjudged"] if count[SUSPECT] else []),
        *(
            [f"{count[NOT_MEASURED]} {_were(count[NOT_MEASURED])} not measured"]
            if count[NOT_MEASURED]
            else []
        ),
    ]
    of = f"Of {counted(len(verdicts), f'{kind} statement')},"
    if not (count[AGREES] or count[DIFFERS]):
        return f"{of} none could be judged: {_and(unjudged)}."
    judged = [
        f"{_verb(count[AGREES], 'agree') if count[AGREES] else 'none agrees'} with what was measured here",
        _verb(count[DIFFERS], "differ") if count[DIFFERS] else "none differs",
    ]
    return f"{of} {_and([*judged, *unjudged])}."


def _basis(points: Sequence[Judged]) -> str:
    """How many permutations the numbers rest on."""
    if not points:
        return ""
    seeds: dict[str, set[int]] = {}
    for judged in points:
        if judged.status is Status.OK or judged.as_intended:
            seeds.setdefault(_without_seed(judged), set()).add(judged.spec.seed)
    counts = sorted({len(found) for found in seeds.values()})
    if not counts:
        return "There is no number here to rely on."
    if counts[-1] == 1:
        return (
            "Every number rests on one permutation (one seed): how far another would move it was not "
            "measured here."
        )
    span = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Numbers are means over {span} permutations (seeds), the same ones for every transport."


def _without_seed(judged: Judged) -> str:
    return dataclasses.replace(judged.spec, seed=0).canonical()


def _states(points: Sequence[Judged]) -> list[str]:
    intended = sum(judged.as_intended for judged in points)
    suspect = sum(judged.status is Status.SUSPECT for judged in points) - intended
    failed = sum(judged.status is Status.FAILED for judged in points)
    whole = f"of {_points(len(points))}"
    sentences = []
    if suspect:
        sentences.append(f"{suspect} {whole} {_are(suspect)} suspect: shown and marked, but in no mean.")
    if intended:
        sentences.append(
            f"{intended} {whole} {_are(intended)} suspect as intended: their figures overload the machine to "
            "show what that does."
        )
    if failed:
        sentences.append(f"{failed} {whole} failed and {'has' if failed == 1 else 'have'} no number.")
    if not sentences and points:
        sentences.append(f"All {_points(len(points))} are ok: the machine kept up.")
    return sentences


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _verb(count: int, verb: str) -> str:
    return f"{count} {verb}{'s' if count == 1 else ''}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _points(count: int) -> str:
    return counted(count, "point")
