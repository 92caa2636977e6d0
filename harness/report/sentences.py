"""The sentences of the terminal and of the report: results, their basis, the state of points, and what the
machine did. Pure.

They are templates over the numbers of points and verdicts, and add nothing that was not measured.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from analysis.completion import ms_text
from common.text import counted, joined, three_digits
from engines.registry import LINUX, SIMULATED_HOSTS, SIMULATOR
from harness import labels
from harness.baseline import is_baseline
from harness.claims.claims import AGREES, DIFFERS, NOT_MEASURED, SUSPECT, UNDECIDED, Verdict, place
from harness.claims.own_settings import OwnSettings
from harness.labels import named, point_label, queue_label, workload_label
from harness.load import ExperimentResults
from harness.metrics.measures import Estimate, flows_unfinished
from harness.metrics.metrics import GOODPUT_PCT_MEAN, Metric
from harness.metrics.published import Published, Source, find, known_as
from harness.options.options import ENGINE
from harness.results import run_json
from harness.results.point_results import PointResult
from model.noise import queue_us
from model.reasons import BASELINE, KINDS, OTHER, Fault, Reason, ReasonKind, texts
from model.result import Status
from model.spec import RunSpec
from model.transports import algorithm

MANY_SETTINGS = 3
"""With more networks and workloads than this, only the verdicts show the results."""
MANY_STATEMENTS = 8
"""With more statements than this, the summary shows only those that differ."""
NOTABLE_PCT = 0.05
"""Smaller shares of time would be printed as 0.0 %."""
MAX_PCT = 102.0
"""A mean above the baseline: flows have more than one link, and the baseline is not what they could reach."""
NO_NUMBER = "There is no number here to rely on."
TOO_MUCH = "this run needs more than the machine has"
NO_BREAK, PLUS_MINUS, AT_LEAST = "\N{NO-BREAK SPACE}", "\N{PLUS-MINUS SIGN}", "\N{GREATER-THAN OR EQUAL TO}"


def results(points: Sequence[PointResult], own: OwnSettings) -> list[str]:
    """Return what was found and what was published, or why there is no number."""
    measured, good = _measured(points)
    return _findings(good, own) if good else _no_number(measured)


def details(points: Sequence[PointResult]) -> list[str]:
    """Return the basis of the results, the state of points and baselines, and what the machine did."""
    measured, good = _measured(points)
    again = [judged for judged in points if len(judged.attempts) > 1]
    above = [
        each for each in good
        if each.spec.topology.kind == "file" and each.goodput_pct and each.goodput_pct.maximum > MAX_PCT
    ]  # fmt: skip
    found = [
        _basis(good),
        _baselines(points),
        _states(measured),
        f"At {counted(len(above), 'point')} flows are above 100 %: that is one flow from the first host to "
        "the last, and other paths of this network are faster. Compare Mb/s (summary.csv)."
        if above
        else "",
        _machine(measured),
        f"Run more than once: {counted(len(again), 'point')}, of which "
        f"{sum(point.status is Status.OK for point in again)} ok now."
        if again
        else "",
        *caution_lines(measured),
    ]
    return [sentence for sentence in found if sentence]


def _measured(points: Sequence[PointResult]) -> tuple[list[PointResult], list[PointResult]]:
    """Return the points without the baselines, and those among them that count."""
    measured = [judged for judged in points if not is_baseline(judged.spec)]
    return measured, [each for each in measured if each.status is Status.OK or each.as_intended]


def _findings(good: Sequence[PointResult], own: OwnSettings) -> list[str]:
    """Return, per network and workload, the goodput or the completion times of the two most different
    transports, and the published values."""
    groups: dict[str, list[PointResult]] = {}
    for judged in good:
        long = judged.goodput_pct is not None and not judged.metric("flows_started")
        if long or judged.only_transfers:
            groups.setdefault(labels.family(judged.spec), []).append(judged)
    if len(groups) > MANY_SETTINGS:
        return []
    specs = [[judged.spec for judged in group] for group in groups.values()]
    return [
        sentence
        for group, head in zip(groups.values(), _heads(specs, own), strict=True)
        for sentence in _finding(group, own, head)
    ]


def _mean_ms(points: Sequence[PointResult]) -> float | None:
    """Return the mean completion time of all flows of several points, in ms; None if none completed."""
    each = (point.metrics for point in points)
    known = [(of["flows_completed"], of["fct_ms_mean"]) for of in each if "fct_ms_mean" in of]
    flows = sum(completed for completed, _ in known)
    return math.fsum(completed * mean for completed, mean in known) / flows if flows else None


def _finding(group: Sequence[PointResult], own: OwnSettings, head: str) -> list[str]:
    specs = [judged.spec for judged in group]
    by_name: dict[str, list[PointResult]] = {}
    for judged, name in zip(group, labels.names(specs), strict=True):
        by_name.setdefault(name, []).append(judged)
    transfers = group[0].only_transfers
    reached: dict[str, float] = {}
    for name, of in by_name.items():
        if transfers:
            mean = _mean_ms(of)
        else:
            pct = [judged.goodput_pct.mean for judged in of if judged.goodput_pct is not None]
            mean = statistics.fmean(pct) if pct else None
        if mean is not None:
            reached[name] = mean
    if not reached or (not transfers and max(reached.values()) > MAX_PCT):
        return []
    # fewest and most subflows, or the worst and best of several algorithms
    order: dict[str, float] = reached
    if not labels.mixed(specs):
        order = {name: by_name[name][0].spec.transport.subflows for name in reached}
    chosen = list(dict.fromkeys((min(reached, key=order.__getitem__), max(reached, key=order.__getitem__))))
    names = [f"MPTCP with {n[6:]} subflows" if n[:6] == "MPTCP " and n[6:].isdecimal() else n for n in chosen]
    if transfers:
        took = joined([f"{ms_text(reached[c])} under {n}" for c, n in zip(chosen, names, strict=True)])
        unfinished = sum(flows_unfinished(judged) or 0 for judged in group)
        left = f" {counted(int(unfinished), 'flow')} did not end." if unfinished else ""
        return [f"{head}{'flows' if head else 'Flows'} take {took} on average.{left}"]
    first, *others = [f"{reached[c]:.1f} %" for c in chosen]
    more = "".join(f", {name} {pct}" for name, pct in zip(names[1:], others, strict=True))
    found = (published_goodput(by_name[name][0].spec, own) for name in chosen)
    rows = [row for row in found if row and known_as([row]) == "published"]
    papers = dict.fromkeys((row.paper, named(row.network)) for row in rows)
    lines = [f"{head}{names[0]} reaches {first} of optimal{more}."]
    for paper, size in papers:
        bounds = joined([f"{row.spoken()} %" for row in rows if row.paper == paper])
        lines.append(f"Published ({paper}, {size}): {bounds}.")
    return lines


_LINUX_HOSTS = {ENGINE: "real hosts", LINUX: "real hosts in virtual time"}


def _heads(groups: Sequence[Sequence[RunSpec]], own: OwnSettings) -> list[str]:
    """Return the head of each group's sentence: network and workload if there are several, `simulated`, what
    overrides the settings of the figure, the axes, and the fields in which groups of one network and workload
    differ."""
    words: tuple[Callable[[RunSpec], str], ...] = (
        lambda each: f"{each.link.rate_mbps:g} Mb/s",
        lambda each: f"{queue_label(each)} queues",
        lambda each: f"{each.link.delay_us:g} us",
        lambda each: f"{each.seconds:g} s",
        lambda each: f"{each.warmup_s:g} s warm-up",
        lambda each: "" if each.engine in SIMULATED_HOSTS else each.dataplane,
        lambda each: "" if each.engine in SIMULATED_HOSTS else each.traffic,
    )
    specs = [group[0] for group in groups]
    settings = [f"{named(spec.topology)} {workload_label(spec)}" for spec in specs]
    axes = labels.shared([spec for group in groups for spec in group]).axes
    heads = []
    for group, spec, setting in zip(groups, specs, settings, strict=True):
        alike = [other for other, same in zip(specs, settings, strict=True) if same == setting]
        parts = [setting] if len(specs) > 1 else []
        if spec.engine in SIMULATED_HOSTS:
            parts.append("simulated" if spec.engine == SIMULATOR else f"simulated ({spec.engine})")
        elif len({other.engine for other in alike}) > 1:
            parts.append(_LINUX_HOSTS.get(spec.engine, spec.engine))
        common = own.together(group)
        if labels.mixed(group):  # the names of the transports tell the others apart
            common = [each for each in common if all(each in own.overrides(of) for of in group)]
        parts += common
        parts += [word(spec) for word in words if len({word(other) for other in alike} - {""}) > 1]
        head = labels.with_axes(dict.fromkeys(parts), spec, axes)
        heads.append(f"{head[0].upper() if head.startswith('sim') else head[0]}{head[1:]}: " if head else "")
    return heads


def published_goodput(spec: RunSpec, own: OwnSettings) -> Published | None:
    """Return the mean goodput that was published for a point of these settings; None if there is none."""
    transport = spec.transport
    running = algorithm(transport.cc, transport.subflows, spec.routing)
    known, label = own.published(spec), workload_label(spec)
    return find(known, GOODPUT_PCT_MEAN, spec.topology, label, transport.subflows, running)


def _basis(good: Sequence[PointResult]) -> str:
    """Return how many seeds the numbers are based on."""
    seeds: dict[str, set[int]] = {}
    for judged in good:
        seeds.setdefault(dataclasses.replace(judged.spec, seed=0).canonical(), set()).add(judged.spec.seed)
    counts = sorted({len(found) for found in seeds.values()})
    if not counts:
        return ""
    if counts[-1] == 1:
        return "Each number is of one seed: run more with --seeds to see how far they differ."
    span = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Numbers are means over {span} seeds."


def _no_number(measured: Sequence[PointResult]) -> list[str]:
    """Return why no point is reliable, and what would help."""
    reasons = [reason for judged in measured for reason in judged.reasons]
    suspect = [judged for judged in measured if judged.status is Status.SUSPECT]
    if not suspect or not reasons:
        why = f" The first failure: {reasons[0]}." if reasons else ""
        return [f"{NO_NUMBER}{why}"] if measured else []
    kinds = Counter(kind for judged in suspect for kind in {_kind(reason) for reason in judged.reasons})
    kind, count = max(kinds.items(), key=lambda pair: (pair[0] != BASELINE, pair[1]))
    example = next(reason for reason in reasons if _kind(reason) == kind)
    faults = dict.fromkeys(reason.fault for reason in reasons if reason.fault.value)
    blamed = [TOO_MUCH if fault is Fault.LOAD else f"at fault: {fault.value}" for fault in faults]
    why = f" ({'; '.join(blamed)})" if blamed else ""
    return [
        f"{NO_NUMBER} {KINDS[kind].title} at {count} of {counted(len(measured), 'point')}{why}, for "
        f"instance: {example}.",
        f"What helps: {KINDS[kind].todo}",
    ]


def _kind(reason: Reason) -> str:
    return reason.kind if reason.kind in KINDS else OTHER


def _baselines(points: Sequence[PointResult]) -> str:
    """Return a sentence on failed and suspect baselines, with the reasons of the first one (failed ones come
    first). Those of figures that overload the machine on purpose do not count."""
    found = [judged for judged in points if is_baseline(judged.spec)]
    bad = [judged for judged in found if judged.status is not Status.OK and not judged.as_intended]
    bad.sort(key=lambda judged: judged.status is not Status.FAILED)
    if not bad:
        return ""
    first = bad[0]
    failed = first.status is Status.FAILED
    count = f"{len(bad)} of {len(found)} baselines are suspect or failed. " if len(bad) > 1 else ""
    what = "failed, so there are no percentages" if failed else "is suspect, so the percentages may be wrong"
    of = f"{named(first.spec.topology)} at {first.spec.link.rate_mbps:g} Mb/s"
    return f"{count}The baseline of {of} {what}: {texts(first.reasons)}."


def _states(measured: Sequence[PointResult]) -> str:
    """Return how many points have each status: `Points: 3 ok, 1 suspect (shown and marked, in no mean).`"""
    if not measured:
        return ""
    count = Counter(judged.state for judged in measured)
    about = {"suspect": " (shown and marked, in no mean)", "failed": " (without a number)"}
    states = [f"{n} {state}{about.get(state, '')}" for state, n in count.items()]
    return f"Points: {'; '.join(states)}."


def _machine(measured: Sequence[PointResult]) -> str:
    """Return what the machine did, as far as the engine measured it; empty if it measured nothing."""
    measured = [judged for judged in measured if judged.status is not Status.FAILED]
    late = [(judged, us) for judged in measured if (us := judged.metric("late_p99_us")) is not None]
    parts = []
    if late:  # of the run whose frames were latest compared with a full queue
        judged, late_us = max(
            late, key=lambda pair: (pair[1] / (queue_us(pair[0].spec.link) or math.inf), pair[1])
        )
        parts.append(f"in the worst run 1 frame in 100 was {late_us / 1000:.2g} ms late or more")
        if full_us := queue_us(judged.spec.link):
            share = late_us / full_us
            times = f"{100 * share:.2g} % of" if share < 1 else f"{three_digits(share)} times"
            parts.append(f"{times} a full queue's {full_us / 1000:.3g} ms")
        if (jitter_us := judged.metric("idle_jitter_p99_us")) is not None:
            parts.append(f"an idle CPU woke up {jitter_us / 1000:.2g} ms late (1 time in 100)")
    for metric, words in (
        ("steal_pct", "the hypervisor took up to {:.1f} % of the CPU time"),
        ("clock_stretch_pct", "the fabric's clock stood still for up to {:.1f} % of a run"),
    ):
        most = max((each.metric(metric) or 0.0 for each in measured), default=0.0)
        parts += [words.format(most)] if most >= NOTABLE_PCT else []
    return f"Machine: {', '.join(parts)}." if parts else ""


def caution_lines(measured: Sequence[PointResult]) -> list[str]:
    """Return which metrics of ok points are doubtful: one sentence per kind of doubt."""
    found: dict[tuple[str, tuple[str, ...]], list[Reason]] = {}
    for judged in (each for each in measured if each.status is Status.OK):
        for key, caution in {(_kind(each), each.doubts): each for each in judged.cautions}.items():
            found.setdefault(key, []).append(caution)
    return [
        f"{_doubted(given[0])} at {counted(len(given), 'point')}"
        f"{', for instance' if len(given) > 1 else ''}: {given[0]}."
        for given in found.values()
    ]


def _doubted(caution: Reason) -> str:
    """Return `RTT and completion times may be off`."""
    what = joined(caution.doubts) if caution.doubts else "its numbers"
    return f"{what[0].upper()}{what[1:]} may be off"


def score(found: Sequence[Verdict], lists: str) -> list[str]:
    """Return how many published statements agree. Statements about what was not run have a sentence of
    their own; `lists` names the page or table that lists them."""
    if not found:
        return ["No published statement belongs to these figures, so there is nothing to compare with."]
    here = [verdict for verdict in found if not verdict.elsewhere]
    count = Counter(verdict.word for verdict in here)
    words = {AGREES: "agree", DIFFERS: "differ", SUSPECT: "on suspect points"}
    order = (AGREES, DIFFERS, UNDECIDED, SUSPECT, NOT_MEASURED)
    states = [f"{count[word]} {words.get(word, word)}" for word in order if count[word] or word == AGREES]
    head = [f"{statements(here)} measured here: {', '.join(states)}."] if here else []
    return [*head, *elsewhere(found, lists)]


def elsewhere(found: Sequence[Verdict], lists: str) -> list[str]:
    """Return a line on statements about what was not run, and one on those that the settings of the points
    keep from being judged; none where there are none."""
    there = [verdict for verdict in found if verdict.elsewhere and not verdict.overrides]
    overridden = [verdict for verdict in found if verdict.overrides]
    lines = []
    if there:
        lines.append(
            f"{statements(there)} about other sizes, workloads or transports: not measured here "
            f"({lists} lists them)."
        )
    if overridden:
        lines.append(not_judged(statements(overridden), (v.overrides for v in overridden)))
    return lines


def statements(found: Sequence[Verdict]) -> str:
    """Return `3 published statements`."""
    return counted(len(found), f"{known_as(v.published for v in found)} statement")


def not_judged(what: str, overrides: Iterable[Sequence[str]]) -> str:
    """Return a line on statements that are not judged because of these settings."""
    words = dict.fromkeys(each for of in overrides for each in of)
    return f"{what} not judged, because points have settings that they are not about: {joined(list(words))}."


@dataclass(frozen=True)
class Doubt:
    """A kind of reason and the points that have it, each with its own words. `intended` summarises those of
    figures that overload the machine on purpose; empty if there are none."""

    kind: ReasonKind
    points: tuple[str, ...]
    intended: str


def doubts(points: Iterable[PointResult]) -> list[Doubt]:
    """Group suspect points and baselines by the kind of their reasons; a point with two kinds is in both."""
    lines: dict[str, list[str]] = {}
    intended: dict[str, list[str]] = {}
    for judged in points:
        for reason in judged.reasons if judged.status is Status.SUSPECT else ():
            of = intended if judged.as_intended else lines
            of.setdefault(_kind(reason), []).append(f"{point_label(judged.spec)}: {reason}")
    return [
        Doubt(
            about,
            tuple(lines.get(kind, ())),
            f"As intended at {counted(len(these), 'point')} of figures that overload the machine, for "
            f"instance {these[0]}."
            if (these := intended.get(kind))
            else "",
        )
        for kind, about in KINDS.items()
        if kind in lines or kind in intended
    ]


def cautions(points: Iterable[PointResult]) -> list[Doubt]:
    """Group the ok points with doubtful metrics by the kind of the doubt."""
    found: dict[str, list[str]] = {}
    for judged in (each for each in points if each.status is Status.OK):
        for caution in judged.cautions:
            line = f"{point_label(judged.spec)}: {_doubted(caution)}: {caution}"
            found.setdefault(_kind(caution), []).append(line)
    return [Doubt(about, tuple(found[kind]), "") for kind, about in KINDS.items() if kind in found]


def retried(points: Iterable[PointResult]) -> list[str]:
    """Return the points that were run more than once, each with its attempts."""
    return [
        f"{point_label(judged.spec)}: {run_json.list_attempts(judged.attempts)}"
        for judged in points
        if len(judged.attempts) > 1
    ]


def found_in(loaded: ExperimentResults) -> list[str]:
    """Return what all figures together have found; nothing if there are too many settings for sentences."""
    return results(loaded.points, OwnSettings(shown.figure for shown in loaded.figures))


def basis(loaded: ExperimentResults) -> list[str]:
    """Return what the results of all figures rest on; claims have sentences of their own."""
    verdicts = list(dict.fromkeys(v for shown in loaded.figures for v in shown.verdicts))
    found = details(loaded.points)
    if not any(shown.claims for shown in loaded.figures):
        found += score(verdicts, "the table below")
    empty = [shown.figure.name for shown in loaded.figures if not shown.points]
    if empty:
        found.append(f"Nothing was run yet for {joined(empty)}.")
    if loaded.broken:
        found.append(f"{counted(len(loaded.broken), 'point')} cannot be read (see below).")
    return found


def findings(loaded: ExperimentResults) -> list[tuple[str, str]]:
    """Return a verdict's word and a sentence on it, for every statement that was judged, each once; of many,
    those that differ."""
    verdicts = dict.fromkeys(v for shown in loaded.figures for v in shown.verdicts)
    judged = [(v, v.measured) for v in verdicts if v.word in {AGREES, DIFFERS}]
    if len(judged) > MANY_STATEMENTS:
        judged = [(v, measured) for v, measured in judged if v.word == DIFFERS]
    return [
        (
            v.word,
            f"{row.paper}, {row.workload.replace('_', ' ')} at {place(row)}: {row.words}. Measured "
            f"{measured_text(measured, row.metric)}, {known_as([row])} {published_text(row)}: {v.word}.",
        )
        for v, measured in judged
        for row in (v.published,)
    ]


def published_text(row: Published) -> str:
    """Return the published bound or level: `about 95 % of optimal`."""
    return with_unit(row.short().replace(">=", AT_LEAST), row.metric.unit)


def measured_text(measured: Estimate | None, metric: Metric) -> str:
    """Return `91.5 ± 0.8 % of optimal (95 %, 6 seeds)`; fewer than three seeds have no interval."""
    if measured is None:
        return "-"
    repeats = counted(measured.n, metric.repeats)
    basis = repeats if measured.half is None else f"95 %, {repeats}"
    if measured.unfinished_pct is not None:
        basis += f", {measured.unfinished_pct:.1f} % of the flows unfinished"
    return f"{with_unit(f'{metric.text(measured.value)}{plus_minus(measured)}', metric.unit)} ({basis})"


def tolerance_text(row: Published) -> str:
    """Return the tolerance and its reason."""
    amount = with_unit(f"{row.tolerance:g}", row.metric.unit) if row.tolerance else "none"
    return f"{amount}: {row.because}" if row.because else amount


def plus_minus(measured: Estimate) -> str:
    """Return ` ± 0.35`, half the 95 % interval of the mean; empty without an interval."""
    return "" if measured.half is None else f" {PLUS_MINUS} {measured.half:.2g}"


def with_unit(number: str, unit: str) -> str:
    """Join a number and its unit so that no line break separates them."""
    return f"{number}{NO_BREAK}{unit}" if unit else number


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


def sources(rows: Iterable[Published]) -> dict[Source, str]:
    """Return the meaning of the sources of these rows."""
    used = {row.source for row in rows}
    return {source: about for source, about in SOURCES.items() if source in used}
