"""The results, their basis, and what the machine did: the sentences below the final table and at the top of
the report. Pure.

They repeat points and verdicts, and add nothing that was not measured.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from analysis.completion import ms_text
from common.text import (
    are,
    counted,
    joined,
    points,
    times,
    verb,
    were,
)
from engines.registry import LINUX, SIMULATED_HOSTS, SIMULATOR
from harness.claims.own_settings import OwnSettings
from harness.claims.verdicts import AGREES, DIFFERS, NOT_MEASURED, SUSPECT, UNDECIDED, Verdict
from harness.metrics.metrics import GOODPUT_PCT_MEAN
from harness.metrics.published import Published, find, known_as
from harness.options.options import ENGINE
from harness.points import labels
from harness.points.baseline import is_baseline
from harness.points.labels import named, queue_label, workload_label
from harness.results.cache import PointNumbers, mean_ms
from harness.results.point_results import Judged
from model.noise import queue_us
from model.reasons import (
    BASELINE,
    KINDS,
    OTHER,
    Fault,
    Reason,
    texts,
)
from model.result import Status
from model.spec import RunSpec
from model.transports import algorithm
from workloads.matrices import has_flows
from workloads.trace import NAME as TRACE

MANY_SETTINGS = 3
"""With more networks and workloads than this, only the verdicts show the results."""
NOTABLE_PCT = 0.05
"""Smaller shares of time would be printed as 0.0 %."""
MAX_PCT = 102.0
"""A mean above the baseline: flows have more than one link, and the baseline is not what they could reach."""
NO_NUMBER = "There is no number here to rely on."
TOO_MUCH = "this run needs more than the machine has"


def sentences(shown: Sequence[Judged], own: OwnSettings) -> list[str]:
    """Return the sentences on points and baselines of figures whose settings are `own`."""
    return [*results(shown, own), *details(shown)]


def results(shown: Sequence[Judged], own: OwnSettings) -> list[str]:
    """Return what was found and what was published, or why there is no number."""
    measured, good = _measured(shown)
    return findings(good, own) if good else no_number(measured)


def details(shown: Sequence[Judged]) -> list[str]:
    """Return the basis of the results, the state of points and baselines, and what the machine did."""
    measured, good = _measured(shown)
    doubted = baselines(shown)
    states = _states(measured, bool(doubted))
    resting = [basis(good)] if good else []
    everything = [
        *resting, *doubted, *states, above_all(good), machine(measured), retried(shown), *cautions(measured),
    ]  # fmt: skip
    return [sentence for sentence in everything if sentence]


def above_all(good: Sequence[Judged]) -> str:
    """Return why flows are above 100 %, where single flows on the user's network are."""
    above = [
        each for each in good
        if each.spec.topology.kind == "file" and each.goodput_pct and each.goodput_pct.maximum > MAX_PCT
    ]  # fmt: skip
    if not above:
        return ""
    return (
        f"At {points(len(above))} flows are above 100 %: that is one flow from the first host to the last, "
        "and other paths of this network are faster. Compare Mb/s (summary.csv)."
    )


def _measured(shown: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Return the points without the baselines, and those among them that count."""
    measured = [judged for judged in shown if not is_baseline(judged.spec)]
    return measured, [each for each in measured if each.status is Status.OK or each.as_intended]


def findings(good: Sequence[Judged], own: OwnSettings) -> list[str]:
    """Return, per network and workload, the goodput of the two most different transports and the published
    values."""
    groups: dict[str, list[Judged]] = {}
    for judged in good:
        long = judged.goodput_pct is not None and not judged.point.numbers.started
        if long or judged.point.only_transfers:
            groups.setdefault(labels.family(judged.spec), []).append(judged)
    if len(groups) > MANY_SETTINGS:
        return []
    wheres = _wheres([[judged.spec for judged in group] for group in groups.values()], own)
    return [
        sentence
        for group, where in zip(groups.values(), wheres, strict=True)
        for sentence in (_completions if group[0].point.only_transfers else _finding)(group, own, where)
    ]


def _completions(group: Sequence[Judged], _own: OwnSettings, where: str) -> list[str]:
    """Return a sentence on the completion times of the two most different transports, and on what is open."""
    specs = [judged.spec for judged in group]
    flows_of: dict[str, list[PointNumbers]] = {}
    first = dict(zip(reversed(labels.names(specs)), reversed(group), strict=True))
    for judged, name in zip(group, labels.names(specs), strict=True):
        flows_of.setdefault(name, []).append(judged.point.numbers)
    reached = {name: mean for name, of in flows_of.items() if (mean := mean_ms(of)) is not None}
    if not reached:
        return []
    of = [
        f"{ms_text(reached[name])} under {_transport(name)}"
        for name in _extremes(reached, first, labels.mixed(specs))
    ]
    unfinished = sum(judged.point.numbers.unfinished for judged in group)
    left = f" {counted(unfinished, 'flow')} did not end." if unfinished else ""
    return [f"{where}{'flows' if where else 'Flows'} take {joined(of)} on average.{left}"]


_LINUX_HOSTS = {ENGINE: "real hosts", LINUX: "real hosts in virtual time"}


def _wheres(groups: Sequence[Sequence[RunSpec]], own: OwnSettings) -> list[str]:
    """Return the head of each group's sentence: network and workload if there are several, `simulated`, what
    overrides the settings of the figure, and the fields in which groups of one network and workload differ.
    """
    specs = [group[0] for group in groups]
    settings = [f"{named(spec.topology)} {workload_label(spec)}" for spec in specs]
    wheres = []
    for group, spec, setting in zip(groups, specs, settings, strict=True):
        alike = [other for other, same in zip(specs, settings, strict=True) if same == setting]
        where = [setting] if len(specs) > 1 else []
        words = ", ".join([*where, *_distinguishing(spec, alike, _overrides(group, own))])
        head = words.replace("simulated", "Simulated", words.startswith("simulated"))
        wheres.append(f"{head}: " if head else "")
    return wheres


def _overrides(group: Sequence[RunSpec], own: OwnSettings) -> list[str]:
    """Return the overrides of a group's points; where their names tell them apart, those that all have."""
    if not labels.mixed(group):
        return own.together(group)
    return [words for words in own.overrides(group[0]) if all(words in own.overrides(s) for s in group)]


def _distinguishing(spec: RunSpec, alike: Sequence[RunSpec], overrides: Sequence[str]) -> list[str]:
    """`simulated`, `ecmp routing`, `10 Mb/s`: the engine, overrides, and other fields that differ among these
    specs."""
    engine: list[str] = []
    if spec.engine in SIMULATED_HOSTS:
        engine.append("simulated" if spec.engine == SIMULATOR else f"simulated ({spec.engine})")
    elif len({other.engine for other in alike}) > 1:
        engine.append(_LINUX_HOSTS.get(spec.engine, spec.engine))
    words: tuple[Callable[[RunSpec], str], ...] = (
        lambda each: f"{each.link.rate_mbps:g} Mb/s",
        lambda each: f"{queue_label(each)} queues",
        lambda each: f"{each.link.delay_us:g} us",
        lambda each: f"{each.seconds:g} s",
        lambda each: "" if each.engine in SIMULATED_HOSTS else each.dataplane,
        lambda each: "" if each.engine in SIMULATED_HOSTS else each.traffic,
    )
    apart = (word(spec) for word in words if len({word(other) for other in alike} - {""}) > 1)
    return list(dict.fromkeys([*engine, *overrides, *filter(None, apart)]))


def _finding(group: Sequence[Judged], own: OwnSettings, where: str) -> list[str]:
    specs = [judged.spec for judged in group]
    means: dict[str, list[float]] = {}
    first = dict(zip(reversed(labels.names(specs)), reversed(group), strict=True))
    for judged, name in zip(group, labels.names(specs), strict=True):
        if judged.goodput_pct is not None:
            means.setdefault(name, []).append(judged.goodput_pct.mean)
    reached = {name: statistics.fmean(values) for name, values in means.items()}
    if max(reached.values()) > MAX_PCT:
        return []
    chosen = _extremes(reached, first, labels.mixed(specs))
    of = [f"{_transport(name)} {reached[name]:.1f} %" for name in chosen]
    head = of[0].replace(f"{reached[chosen[0]]:.1f} %", f"reaches {reached[chosen[0]]:.1f} % of optimal")
    return [f"{where}{', '.join([head, *of[1:]])}.", *_published([first[name] for name in chosen], own)]


def _extremes(reached: dict[str, float], first: dict[str, Judged], mixed: bool) -> list[str]:
    """The transports to name: fewest and most subflows, or the worst and best of several algorithms."""
    order: Callable[[str], float] = reached.__getitem__
    if not mixed:
        order = lambda name: first[name].spec.transport.subflows  # noqa: E731
    return list(dict.fromkeys((min(reached, key=order), max(reached, key=order))))


def _transport(name: str) -> str:
    """`MPTCP 8` in the words of a sentence."""
    what, _, count = name.partition(" ")
    return f"MPTCP with {count} subflows" if what == "MPTCP" and count.isdecimal() else name


def _published(chosen: Sequence[Judged], own: OwnSettings) -> list[str]:
    """`Published (SIGCOMM'11, k=8): below 50 % and about 95 %.`"""
    rows = [row for judged in chosen if (row := beside(judged.spec, own)) and known_as([row]) == "published"]
    papers = list(dict.fromkeys((row.paper, named(row.network)) for row in rows))
    return [
        f"Published ({paper}, {size}): {joined([f'{row.spoken()} %' for row in rows if row.paper == paper])}."
        for paper, size in papers
    ]


def beside(spec: RunSpec, own: OwnSettings) -> Published | None:
    """Return the mean goodput that was published for a point of these settings; None if there is none."""
    transport = spec.transport
    running = algorithm(transport.cc, transport.subflows, spec.routing)
    known, label = own.published(spec), workload_label(spec)
    return find(known, GOODPUT_PCT_MEAN, spec.topology, label, transport.subflows, running)


def basis(good: Sequence[Judged]) -> str:
    """Return how many permutations, or repetitions of calls, the numbers are based on."""
    seeds: dict[str, set[int]] = {}
    for judged in good:
        seeds.setdefault(dataclasses.replace(judged.spec, seed=0).canonical(), set()).add(judged.spec.seed)
    counts = sorted({len(found) for found in seeds.values()})
    matrices = {judged.spec.workload.matrix for judged in good}
    calls = not any(map(has_flows, matrices))
    what = "repetition" if calls else _drawn(matrices)
    if counts[-1] == 1:
        return (
            f"Every number rests on one {what} (one seed). How much another one would change it "
            "was not measured."
        )
    span = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    many = f"{what}s" if " " not in what else f"{what.split()[0]}s {what.partition(' ')[2]}"
    same = "" if calls else ", the same for every transport"
    return f"Numbers are means over {span} {many} (seeds){same}."


def _drawn(matrices: set[str]) -> str:
    """Return what a seed draws under these traffic matrices."""
    if matrices == {"one_to_one"}:
        return "permutation"
    return "choice of paths" if matrices == {TRACE} else "draw of flows and paths"


def no_number(measured: Sequence[Judged]) -> list[str]:
    """Return why no point is reliable, and what would help."""
    if not measured:
        return []
    reasons = [reason for judged in measured for reason in judged.reasons]
    failed = [judged for judged in measured if judged.status is Status.FAILED]
    if len(failed) == len(measured) or not reasons:
        why = f" The first failure: {reasons[0]}." if reasons else ""
        return [f"{NO_NUMBER}{why}"]
    suspect = [judged for judged in measured if judged.status is Status.SUSPECT]
    kinds = Counter(kind for judged in suspect for kind in {_kind(reason) for reason in judged.reasons})
    kind, count = max(kinds.items(), key=lambda pair: (pair[0] != BASELINE, pair[1]))
    example = next(reason for reason in reasons if _kind(reason) == kind)
    about = KINDS[kind]
    return [
        f"{NO_NUMBER} {about.title} at {count} of {points(len(measured))}{_faults(reasons)}, for instance: "
        f"{example}.",
        f"What helps: {about.todo}",
    ]


def _faults(reasons: Sequence[Reason]) -> str:
    """` (at fault: hypervisor)`, as far as the fault is known."""
    faults = list(dict.fromkeys(reason.fault for reason in reasons if reason.fault.value))
    others = [fault.value for fault in faults if fault is not Fault.LOAD]
    named_faults = [
        *([TOO_MUCH] if Fault.LOAD in faults else []),
        *([f"at fault: {joined(others)}"] if others else []),
    ]
    return f" ({'; '.join(named_faults)})" if named_faults else ""


def _kind(reason: Reason) -> str:
    return reason.kind if reason.kind in KINDS else OTHER


def baselines(shown: Sequence[Judged]) -> list[str]:
    """Return a sentence on failed and suspect baselines, with the reasons of the first one (failed ones come
    first). Those of figures that overload the machine on purpose do not count."""
    found = [judged for judged in shown if is_baseline(judged.spec)]
    bad = [judged for judged in found if judged.status is not Status.OK and not judged.as_intended]
    if not bad:
        return []
    failed = [judged for judged in bad if judged.status is Status.FAILED]
    first = (failed or bad)[0]
    what = "failed, so there are no percentages" if failed else "is suspect, so the percentages may be wrong"
    count = f"{len(bad)} of {len(found)} baselines are suspect or failed. " if len(bad) > 1 else ""
    of = f"{named(first.spec.topology)} at {first.spec.link.rate_mbps:g} Mb/s"
    return [f"{count}The baseline of {of} {what}: {texts(first.reasons)}."]


def _states(measured: Sequence[Judged], no_baseline: bool) -> list[str]:
    intended = sum(judged.as_intended for judged in measured)
    suspect = sum(judged.status is Status.SUSPECT for judged in measured) - intended
    failed = sum(judged.status is Status.FAILED for judged in measured)
    whole = f"of {points(len(measured))}"
    states = []
    if suspect:
        states.append(f"{suspect} {whole} {are(suspect)} suspect: shown and marked, but not in any mean.")
    if intended:
        states.append(
            f"{intended} {whole} {are(intended)} suspect as intended: their figures overload the machine to "
            "show the effect."
        )
    if failed:
        states.append(f"{failed} {whole} failed and {'has' if failed == 1 else 'have'} no number.")
    if not states and measured and not no_baseline:
        states.append(f"All {points(len(measured))} are ok." if len(measured) > 1 else "The point is ok.")
    return states


def machine(measured: Sequence[Judged]) -> str:
    """Return what the machine did, as far as the engine measured it; empty if it measured nothing."""
    measured = [judged for judged in measured if judged.status is not Status.FAILED]
    parts = [
        _lateness(measured),
        _share(measured, "steal_pct", "its hypervisor took up to {:.1f} % of the CPU time"),
        _share(measured, "clock_stretch_pct", "the fabric's clock stood still for up to {:.1f} % of a run"),
    ]
    sentence = "; ".join(part for part in parts if part)
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else ""


def _lateness(measured: Sequence[Judged]) -> str:
    """The lateness of the run whose frames were latest compared with a full queue, in ms."""
    late = [(judged, us) for judged in measured if (us := judged.metric("late_p99_us")) is not None]
    if not late:
        return ""
    judged, late_us = max(
        late, key=lambda pair: (pair[1] / (queue_us(pair[0].spec.link) or math.inf), pair[1])
    )
    full_us = queue_us(judged.spec.link)
    jitter_us = judged.metric("idle_jitter_p99_us")
    sentence = f"in the worst run 1 frame in 100 was {late_us / 1000:.2g} ms late or more"
    if full_us:
        sentence += f", {100 * late_us / full_us:.2g} % of a full queue's {full_us / 1000:.3g} ms"
    if jitter_us is None:
        return sentence
    return f"{sentence}, and an idle CPU woke up {jitter_us / 1000:.2g} ms late (1 time in 100)"


def _share(measured: Sequence[Judged], metric: str, words: str) -> str:
    most = max((each.metric(metric) or 0.0 for each in measured), default=0.0)
    return words.format(most) if most >= NOTABLE_PCT else ""


def retried(shown: Sequence[Judged]) -> str:
    """Return how many points were run more than once, and how many of them are ok."""
    again = [judged.point for judged in shown if len(judged.point.attempts) > 1]
    if not again:
        return ""
    runs = [len(point.attempts) for point in again]
    good = sum(point.status is Status.OK for point in again)
    often = times(runs[0]) if len(set(runs)) == 1 else f"up to {max(runs)} times"
    now = f"{good} of them {are(good)} ok now" if len(runs) > 1 else f"it is {again[0].status} now"
    return f"{points(len(runs))} {were(len(runs))} run {often}; {now}."


def cautions(measured: Sequence[Judged]) -> list[str]:
    """Return which metrics of ok points are doubtful: one sentence per kind of doubt."""
    found: dict[tuple[str, tuple[str, ...]], list[Reason]] = {}
    for judged in (each for each in measured if each.status is Status.OK):
        for each in {(_kind(caution), caution.doubts): caution for caution in judged.cautions}.items():
            found.setdefault(each[0], []).append(each[1])
    return [_caution(given) for given in found.values()]


def _caution(given: Sequence[Reason]) -> str:
    more = ", for instance" if len(given) > 1 else ""
    return f"{doubted(given[0])} at {points(len(given))}{more}: {given[0]}."


def doubted(caution: Reason) -> str:
    """Return `RTT and completion times may be off`."""
    what = joined(caution.doubts) if caution.doubts else "its numbers"
    return f"{what[0].upper()}{what[1:]} may be off"


def score(found: Sequence[Verdict], lists: str) -> list[str]:
    """Return how many published statements agree. Statements about what was not run have a sentence of
    their own; `lists` names the page or table that lists them."""
    if not found:
        return ["No published statement belongs to these figures, so there is nothing to compare with."]
    here = [verdict for verdict in found if not verdict.elsewhere]
    return [*([_judged(here)] if here else []), *elsewhere(found, lists)]


def elsewhere(found: Sequence[Verdict], lists: str) -> list[str]:
    """Return a line on statements about what was not run, and one on those that the settings of the points
    keep from being judged; none where there are none."""
    there = [verdict for verdict in found if verdict.elsewhere and not verdict.overrides]
    overridden = [verdict for verdict in found if verdict.overrides]
    lines = []
    if there:
        what = counted(len(there), f"{known_as(v.published for v in there)} statement")
        lines.append(
            f"{what} {are(len(there))} about other sizes, workloads or transports: not measured here "
            f"({lists} lists them)."
        )
    if overridden:
        what = counted(len(overridden), f"{known_as(v.published for v in overridden)} statement")
        lines.append(not_judged(what, len(overridden), (v.overrides for v in overridden)))
    return lines


def not_judged(what: str, count: int, overrides: Iterable[Sequence[str]]) -> str:
    """Return a line on statements that are not judged because of these settings."""
    words = dict.fromkeys(each for of in overrides for each in of)
    return f"{what} {are(count)} not judged, because this is not the figure's setting: {joined(list(words))}."


WORDS = (AGREES, DIFFERS, UNDECIDED, SUSPECT, NOT_MEASURED)


def _judged(found: Sequence[Verdict]) -> str:
    kind = known_as(v.published for v in found)
    count = {word: sum(v.word == word for v in found) for word in WORDS}
    missing = count[NOT_MEASURED]
    unjudged = [
        *(
            [f"{count[UNDECIDED]} {are(count[UNDECIDED])} undecided: more seeds are needed"]
            if count[UNDECIDED]
            else []
        ),
        *([f"{verb(count[SUSPECT], 'rest')} on suspect points, unjudged"] if count[SUSPECT] else []),
        *([f"{missing} {were(missing)} not measured"] if missing else []),
    ]
    of = f"Of {counted(len(found), f'{kind} statement')},"
    if not (count[AGREES] or count[DIFFERS]):
        return f"{of} none could be judged: {joined(unjudged)}."
    judged = [
        f"{verb(count[AGREES], 'agree') if count[AGREES] else 'none agrees'} with what was measured here",
        verb(count[DIFFERS], "differ") if count[DIFFERS] else "none differs",
    ]
    return f"{of} {joined([*judged, *unjudged])}."
