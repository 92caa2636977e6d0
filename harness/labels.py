"""Names of points that stand side by side in a table or chart. Pure."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from engines.registry import LINUX, SIMULATED_HOSTS, SIMULATOR, STEADY_STATE
from harness.baseline import is_baseline
from model import arms, transports, tuning
from model.congestion import described
from model.schedulers import scheduler_title
from model.spec import TCP, RunSpec, SchedulerSpec, TopologySpec
from model.transports import USUAL_ROUTING
from model.words import unusual, varied, words_at
from topos import TOPOLOGIES, size_words
from workloads import matrices

_IN_VIRTUAL_TIME = {SIMULATOR: ", simulated", LINUX: ", virtual time"}

MAX_AXES = 4


def named(topology: TopologySpec) -> str:
    """Return a short name: `k=8` or `k=8, 4:1` for a FatTree, `dual-homed FatTree k=8`, `star n=16`."""
    return sizes(topology) if topology.kind == "fat_tree" else network(topology)


def network(topology: TopologySpec) -> str:
    """Return a network's name, always with its kind: `FatTree k=8, 4:1`, `dumbbell n=2, lanes=6`."""
    return f"{TOPOLOGIES[topology.kind].title} {sizes(topology)}"


def sizes(topology: TopologySpec) -> str:
    """Return its size, and parameters that differ from their defaults."""
    return ", ".join(size_words(topology.kind, topology.params))


def workload_label(spec: RunSpec) -> str:
    """Return the matrix as one types it: `one_to_one`, `stride:4`."""
    return matrices.label(spec.workload.matrix, spec.workload.params)


def queue_label(spec: RunSpec) -> str:
    """Return `100-packet`, `150000-byte`, or `unbounded`."""
    if spec.link.queue_bytes:
        return f"{spec.link.queue_bytes}-byte"
    return f"{spec.link.queue_pkts}-packet" if spec.link.queue_pkts else "unbounded"


def family(spec: RunSpec) -> str:
    """Return a key that points share if they differ in subflows, congestion control, routing, scheduler and
    seed alone: those share a table."""
    return spec.key(ignoring=("transport.subflows", "transport.cc", "routing", "scheduler", "seed"))


def settings(spec: RunSpec) -> str:
    """Return what sets a point apart from others on its network: `20 s warm-up, 50 us per link`.

    Points that differ in it must not share a curve.
    """
    return ", ".join([f"{spec.warmup_s:g} s warm-up", *unusual_words(spec)])


def unusual_words(spec: RunSpec, without: Collection[str] = ()) -> list[str]:
    """Return the unusual settings in words, except those of fields that the reader sees elsewhere."""
    return unusual(spec, simulated=spec.engine in SIMULATED_HOSTS, without=without)


def overriding(words: Sequence[str]) -> str:
    """Return the end of a heading for points with these settings instead of their figure's."""
    return f"; not the figure's: {', '.join(words)}" if words else ""


def short(subflows: int) -> str:
    """Return `TCP` or, for example, `MPTCP 4`."""
    return "TCP" if subflows == 1 else f"MPTCP {subflows}"


def transport_name(spec: RunSpec) -> str:
    """Return `TCP`, `MPTCP 4`, or the title of another transport."""
    of = spec.transport
    return short(of.subflows) if of.protocol == TCP else transports.title(of.name)


def transport(spec: RunSpec) -> str:
    """Return `TCP`, `PacketScatter`, `MPTCP 8 LIA, joining after 100 kB`, `TCP, first fit every 100 ms`."""
    name = transports.transport(spec.transport.cc, spec.transport.subflows, spec.routing)
    late = f"joining {tuning.joins(spec.transport)}" if spec.transport.joins_late else ""
    return ", ".join(filter(None, (name, late, scheduler_title(spec.scheduler))))


def names(specs: Sequence[RunSpec]) -> list[str]:
    """Return a name for each: `MPTCP 8`, or `MPTCP 8 LIA` where they differ in more than subflows. Plain TCP
    that runs once beside each coupled algorithm is then `TCP (beside lia)`."""
    if not mixed(specs):
        return [transport_name(spec) for spec in specs]
    transports_of = [transport(spec) for spec in specs]
    ccs: dict[str, set[str]] = {}
    for name, spec in zip(transports_of, specs, strict=True):
        ccs.setdefault(name, set()).add(spec.transport.cc)
    return [
        f"{name} (beside {spec.transport.cc})" if len(ccs[plain]) > 1 else name
        for plain, name, spec in zip(transports_of, _versioned(transports_of, specs), specs, strict=True)
    ]


def _versioned(names_of: Sequence[str], specs: Sequence[RunSpec]) -> list[str]:
    """Return the names; where texts of a user's file differ under one name, with a digest of the text."""
    texts: dict[str, set[str]] = {}
    for spec in specs:
        texts.setdefault(spec.transport.cc, set()).add(spec.transport.algorithm)
    return [
        f"{name} (text {digest(spec.transport.algorithm_text)})"
        if len(texts[spec.transport.cc]) > 1
        else name
        for name, spec in zip(names_of, specs, strict=True)
    ]


def digest(text: str) -> str:
    """Return the first 12 hex digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def mixed(specs: Iterable[RunSpec]) -> bool:
    """Whether they differ in congestion control, routing, scheduler or when subflows join."""
    return len({(*_how(spec), spec.scheduler) for spec in specs}) > 1


def _how(spec: RunSpec) -> tuple[str, ...]:
    """Congestion control, routing, and when subflows join where there are any to join."""
    return (
        spec.transport.cc,
        spec.transport.algorithm,
        spec.routing,
        tuning.joins(spec.transport) or tuning.AT_ONCE,
    )


def congestion(specs: Sequence[RunSpec]) -> str:
    """Return e.g. `lia, coupled (TCP: reno)`, or the titles of several."""
    if len({spec.transport.cc for spec in specs}) == 1:
        return described(specs[0].transport.cc, (spec.transport.subflows for spec in specs))
    running = {transports.algorithm(s.transport.cc, s.transport.subflows, s.routing) for s in specs}
    return ", ".join(map(transports.title, sorted(running, key=transports.rank)))


def routing(specs: Iterable[RunSpec]) -> str:
    """Return e.g. `hashed and scatter routing`, and the title of a scheduler that all points have."""
    of = list(specs)
    led = {scheduler_title(spec.scheduler) for spec in of}
    policies = f"{' and '.join(sorted({spec.routing for spec in of}))} routing"
    return ", ".join(filter(None, (policies, *(led if len(led) == 1 else ()))))


def label(spec: RunSpec, axes: Sequence[str] = ()) -> str:
    """Return the name of a point: `k=8 one_to_one, MPTCP 4 LIA, seed 1`, the tuning of its hosts, and the
    fields `axes` of its spec, by path."""
    at = "".join(f", {words_at(spec, path)}" for path in axes)
    if is_baseline(spec):
        return f"{named(spec.topology)} baseline, one uncongested TCP flow{at}{_engine(spec)}"
    what = f"{named(spec.topology)} {workload_label(spec)}, {sender(spec)}, seed {spec.seed}"
    return what + at + tuned(spec) + _engine(spec)


def point_label(spec: RunSpec) -> str:
    """Return a point in words with its links and duration: `k=8 one_to_one, TCP, seed 1, 5 Mb/s, 100-packet
    queues, 40 s`."""
    return f"{label(spec)}, {spec.link.rate_mbps:g} Mb/s, {queue_label(spec)} queues, {spec.seconds:g} s"


def with_axes(parts: Iterable[str], spec: RunSpec, axes: Sequence[str]) -> str:
    """Return the parts of a title, and the value at each of the axes that no part has: a usual one, too."""
    title = ", ".join(filter(None, parts))
    values = [words_at(spec, path) for path in axes]
    return ", ".join(filter(None, [title, *(words for words in values if words not in title)]))


def setting_title(specs: Sequence[RunSpec], overrides: Sequence[str] = (), axes: Sequence[str] = ()) -> str:
    """Return the network, the load, the links and all other settings that the points of a table share, the
    value of each of the axes, and which settings override those of the figure."""
    spec = specs[0]
    parts = [
        network(spec.topology),
        workload_label(spec),
        f"{spec.link.rate_mbps:g} Mb/s links",
        f"{queue_label(spec)} queues",
        congestion(specs),
        f"{spec.seconds:g} s measured",
        f"{spec.warmup_s:g} s warm-up",
        *unusual_words(_of_all(specs), without=("link.queue_bytes",)),
    ]
    return with_axes(parts, spec, axes) + overriding(overrides)


def _of_all(specs: Sequence[RunSpec]) -> RunSpec:
    """Return the first spec without what each row of a table names itself."""
    spec = specs[0]
    routing = spec.routing if all(each.routing == spec.routing for each in specs) else USUAL_ROUTING
    scheduler = spec.scheduler if all(each.scheduler == spec.scheduler for each in specs) else SchedulerSpec()
    return dataclasses.replace(spec, routing=routing, scheduler=scheduler)


@dataclass(frozen=True)
class CommonLabels:
    """What all points of a run have in common, in words; empty where they differ. It is printed once, before
    the first point."""

    setting: str = ""
    seed: str = ""
    tuned: str = ""
    engine: str = ""
    axes: tuple[str, ...] = ()
    """Paths of the fields of the spec in which points of one arm differ, beside those that names have."""

    @property
    def words(self) -> str:
        """`k=4 one_to_one, seed 1, simulated`."""
        return f"{', '.join(filter(None, (self.setting, self.seed)))}{self.tuned}{self.engine}".lstrip(", ")


def shared(specs: Sequence[RunSpec]) -> CommonLabels:
    """Return what these points have in common. A baseline has no workload and no seed of its own."""
    measured = [spec for spec in specs if not is_baseline(spec)] or list(specs)

    def one(words: Iterable[str]) -> str:
        found = set(words)
        return found.pop() if len(found) == 1 else ""

    return CommonLabels(
        one(_setting(spec) for spec in measured),
        one(f"seed {spec.seed}" for spec in measured),
        one(tuned(spec) for spec in measured),
        one(_engine(spec) for spec in specs),
        _axes(measured),
    )


def _axes(specs: Sequence[RunSpec]) -> tuple[str, ...]:
    """Return the paths of the fields in which points of one arm differ, or of none: arms differ in many.

    Points that differ in more than MAX_AXES fields are of different figures, whose stacks differ.
    """
    of_arms: dict[str, list[RunSpec]] = {}
    for spec in specs:
        of_arms.setdefault(arms.words_of(spec), []).append(spec)
    paths = dict.fromkeys(path for group in of_arms.values() for path in varied(group))
    return tuple(paths) if len(paths) <= MAX_AXES else ()


def beside(spec: RunSpec, alike: CommonLabels) -> str:
    """Return the name of a point without what all points of its run share: `MPTCP 4 LIA`."""
    engine = "" if alike.engine else _engine(spec)
    if is_baseline(spec):
        on_its_own = not alike.setting.startswith(f"{named(spec.topology)} ")
        axes = "".join(f", {words_at(spec, path)}" for path in alike.axes)
        return f"{f'{named(spec.topology)} ' if on_its_own else ''}baseline, one flow alone{axes}{engine}"
    parts = (
        "" if alike.setting else _setting(spec),
        sender(spec),
        "" if alike.seed else f"seed {spec.seed}",
        *(words_at(spec, path) for path in alike.axes),
    )
    return ", ".join(filter(None, parts)) + ("" if alike.tuned else tuned(spec)) + engine


def sender(spec: RunSpec) -> str:
    """Return the name of the spec's arm if it has one: arms of one transport differ in queue and stack."""
    return arms.words_of(spec) or transport(spec)


def _setting(spec: RunSpec) -> str:
    return f"{named(spec.topology)} {workload_label(spec)}"


def _engine(spec: RunSpec) -> str:
    """Return the engine for a label, because simulated points may be next to emulated ones."""
    if spec.engine in STEADY_STATE:
        return f", {spec.engine}"
    return _IN_VIRTUAL_TIME.get(spec.engine, "")


def tuned(spec: RunSpec) -> str:
    """Return `, tcp_wmem 1M 16K 4M` if a spec tunes its hosts; else empty."""
    words = tuning.words(spec.transport)
    return "" if words == tuning.DEFAULT else f", {words}"
