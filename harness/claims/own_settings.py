"""Which settings of a point override those of its figure. Pure.

A published statement is about the settings of its figure. With `--loss 1` or `--routing ecmp` the same figure
shows something else: no statement is judged on such a point or drawn beside it, and its overrides are named.

The figure's own settings are those of the points that it makes without options, on the point's network, at
its rate and for its duration. These, its load, its subflows and its seed are no overrides: statements name
them, or every table and chart shows them. A rate that the figure pins is one of its settings. A statement
may name other values, or settings on which it does not depend (`Published.where`).
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import topos
from common.errors import UsageError
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS, SIMULATOR
from harness.baseline import is_baseline
from harness.experiment import Figure, RateOf
from harness.labels import queue_label, workload_label
from harness.metrics.published import Published
from harness.metrics.where import SETTINGS, has
from harness.options.fields import BY_PATH, SPEC_FIELDS, Hosts
from harness.options.options import ENGINE, MAX_K, SweepOptions, resolve, sweeps_of
from harness.plan.sweeps import fat_trees
from model.congestion import BASELINE, COUPLED_DEFAULT, in_force
from model.spec import RunSpec, Settings, TopologySpec, typed
from model.transports import title
from model.words import RELATIONS, WORDS

_RATE = "link.rate_mbps"
_PATHS = tuple(path for path in SETTINGS if path not in {"warmup_s", "seconds"})
"""What is a setting of a figure, by path. `transport.cc` stands for the text of an algorithm, too."""
_of = operator.attrgetter(*_PATHS)

_OF_REAL, _OF_SIMULATED = (
    frozenset(
        path
        for path in _PATHS
        for option in SPEC_FIELDS
        if option.hosts is hosts
        if path == option.path or path.startswith(f"{option.path}.")
    )
    for hosts in (Hosts.REAL, Hosts.SIMULATED)
)
"""Settings that only real or only simulated hosts have."""

Values = tuple[Any, ...]
"""The settings of a point, in the order of `_PATHS`."""


class OwnSettings:
    """The settings that figures give their points, to compare points with."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self._figures = [_own_of(figure) for figure in figures]

    def overrides(self, spec: RunSpec) -> tuple[str, ...]:
        """Return the settings that override those of the figure to which the point is most similar, in words:
        `("ecmp routing", "1 % random loss")`. Empty if the settings are a figure's own."""
        return _fewest(own.overrides(spec) for own in self._figures)

    def together(self, specs: Iterable[RunSpec]) -> list[str]:
        """Return the overrides of several points, each once."""
        return list(dict.fromkeys(words for spec in specs for words in self.overrides(spec)))

    def unlike(self, row: Published, spec: RunSpec) -> tuple[str, ...]:
        """Return the settings for which a statement of the figures is not about the point, in words.
        Network, workload and transport are the statement's own fields and do not count."""
        return _fewest(own.unlike(row, spec) for own in self._figures)

    def published(self, spec: RunSpec) -> list[Published]:
        """Return the statements of the figures that are about points with the settings of this one."""
        rows = (row for own in self._figures for row in own.figure.published if own.unlike(row, spec) == ())
        return list(dict.fromkeys(rows))


def _fewest(found: Iterable[tuple[str, ...] | None]) -> tuple[str, ...]:
    """Return the fewest words; none of figures that have no points in the engine.

    To look at a figure takes an expansion of it, so those after one without words are not looked at.
    """
    fewest: tuple[str, ...] | None = None
    for words in found:
        if words is not None and (fewest is None or len(words) < len(fewest)):
            fewest = words
        if fewest == ():
            break
    return fewest or ()


class _Own:
    """The settings of one figure. Points of one network, load and rate share an expansion, except those with
    times and traces, which depend on durations and the seed: an expansion per point took 1.2 s of CPU time
    for pFabric's 822 points."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure
        self._points: dict[object, Sequence[RunSpec]] = {}
        self._values: dict[object, frozenset[Values]] = {}
        self._overrides: dict[str, tuple[str, ...] | None] = {}
        self._resolved: dict[object, list[SweepOptions]] = {}
        self._variants: dict[str, list[tuple[Settings, Settings]]] = {}
        self._networks: dict[object, list[tuple[Settings, Settings]]] = {}

    def overrides(self, spec: RunSpec) -> tuple[str, ...] | None:
        """Return the overrides in words; None if the figure has no points in this engine."""
        name = spec.content_hash()
        if name not in self._overrides:
            paths = self._differing(spec)
            self._overrides[name] = None if paths is None else _in_words(spec, paths)
        return self._overrides[name]

    def unlike(self, row: Published, spec: RunSpec) -> tuple[str, ...] | None:
        """Return the settings for which the statement is not about the point; None as in `overrides`."""
        if not row.where or is_baseline(spec):
            return self.overrides(spec)
        paths = self._differing(spec, row.where)
        if paths is None:
            return None
        return _in_words(spec, [*paths, *(p for p in row.where if not has(spec, p, row.where[p]))])

    def _differing(self, spec: RunSpec, apart: Collection[str] = ()) -> list[str] | None:
        """Return the paths, without those `apart`, at which the point differs from the figure's own point to
        which it is most similar; None if the figure has no points in this engine."""
        if is_baseline(spec):
            return []
        own, ours = self._own(spec), self._settings(spec, spec.transport.subflows)
        if ours in own:
            return []
        differing = (
            [
                p
                for p, mine, theirs in zip(_PATHS, ours, each, strict=True)
                if mine != theirs and p not in apart
            ]
            for each in own
        )
        return min(differing, key=lambda found: (len(found), found), default=None)

    def _settings(self, spec: RunSpec, subflows: int) -> Values:
        variants = self._variants_in(spec.engine)
        pinned_rate = any("link.rate_mbps" in defaults for _, defaults in variants)
        return _values(spec, subflows, pinned_rate)

    def _own(self, spec: RunSpec) -> frozenset[Values]:
        """Return the settings of the own points on the point's network, of those with its workload, and of
        those that are TCP or MPTCP as it is, each as far as there are any."""
        network, workload, tcp = _network(spec.topology), workload_label(spec), spec.transport.subflows == 1
        timed = spec.events or spec.link.trace or spec.scheduler.down_for_s
        times = (spec.warmup_s, spec.seconds, spec.seed) if timed else None
        sweeps = self._sweeps(spec)
        own_load = any(spec.workload in options.workloads for options in sweeps)
        load = (spec.workload.matrix, *sorted(spec.workload.params.items())) if own_load else None
        same = spec.engine, network, load, spec.link.rate_mbps, times
        if (same, workload, tcp) not in self._values:
            if same not in self._points:
                self._points[same] = list(self._own_points(spec, sweeps))
            own = self._points[same]
            own = [each for each in own if _network(each.topology) == network] or own
            own = [each for each in own if workload_label(each) == workload] or own
            own = [each for each in own if (each.transport.subflows == 1) == tcp] or own
            found = frozenset(self._settings(each, spec.transport.subflows) for each in own)
            self._values[same, workload, tcp] = found
        return self._values[same, workload, tcp]

    def _own_points(self, spec: RunSpec, sweeps: Sequence[SweepOptions]) -> Iterator[RunSpec]:
        """Yield what the figure runs in the engine of `spec` without options, with its load if it is one of
        the figure's, on its network, at its rate, for its duration and with its seed."""
        for options in sweeps:
            own = spec.workload in options.workloads
            chosen = dataclasses.replace(
                options,
                workloads=(spec.workload,) if own else options.workloads,
                seeds=(spec.seed,),
                base=options.base.changed({"warmup_s": spec.warmup_s, "seconds": spec.seconds}),
            )
            rate_of = _constant(options.rate_mbps or spec.link.rate_mbps)
            yield from (s for s in self.figure.points(chosen, rate_of) if s.engine == spec.engine)

    def _sweeps(self, spec: RunSpec) -> list[SweepOptions]:
        """Return the options of what the figure runs beside points of this network and engine, apart from
        durations and seed. MPTCP may have fallen back to what a machine without LIA runs."""
        key = spec.engine, _network(spec.topology)
        if key not in self._resolved:
            found = self._resolved[key] = []
            for chosen, defaults in self._variants_on(spec.engine, spec.topology):
                durations = {"warmup_s": spec.warmup_s, "seconds": spec.seconds}
                sized = {**chosen, **durations, "seed": spec.seed, "seeds": 1}
                falls_back = not {*LINUX_HOSTS}.isdisjoint(chosen["engine"]) and (
                    spec.engine in LINUX_HOSTS or chosen["engine"] == self.figure.defaults["engine"]
                )
                for cc in (COUPLED_DEFAULT, *([BASELINE] if falls_back else [])):
                    found += sweeps_of(sized, defaults, cc)
        return self._resolved[key]

    def _variants_in(self, engine: str) -> list[tuple[Settings, Settings]]:
        if engine not in self._variants:
            self._variants[engine] = _variants(self.figure, engine)
        return self._variants[engine]

    def _variants_on(self, engine: str, network: TopologySpec) -> list[tuple[Settings, Settings]]:
        """Return the variants with the option that chooses the network. To find its k takes a plan per k."""
        key = engine, _network(network)
        if key not in self._networks:
            self._networks[key] = [
                ({**of, **_network_options(self.figure, of, defaults, network)}, defaults)
                for of, defaults in self._variants_in(engine)
            ]
        return self._networks[key]


_expanded: dict[int, _Own] = {}
"""The settings of figures by identity. Tables, verdicts, charts and the report ask for those of the same
figures: for pFabric's 822 points that takes 0.2 s of CPU time, and 10 ms again."""
_MAX_EXPANDED = 64


def _own_of(figure: Figure) -> _Own:
    own = _expanded.pop(id(figure), None) or _Own(figure)
    _expanded[id(figure)] = own  # the last one used comes last; it keeps the figure, so the id is its own
    if len(_expanded) > _MAX_EXPANDED:
        del _expanded[next(iter(_expanded))]
    return own


def _constant(mbps: float) -> RateOf:
    return lambda _network: mbps


def _variants(figure: Figure, engine: str) -> list[tuple[Settings, Settings]]:
    """Return the variants of the figure that have this engine: alone, and beside others that figures run with
    it, because points of several engines share what only real hosts have. Without those that it refuses."""
    together = (names for names in (figure.defaults["engine"], (SIMULATOR, ENGINE)) if engine in names)
    found = []
    for engines in dict.fromkeys([(engine,), *together]):
        for options, defaults in figure.variants({"engine": engines}):
            try:
                resolve(options, defaults)
            except UsageError:
                continue
            if engine in options["engine"]:
                found.append((options, defaults))
    return found


def _network_options(figure: Figure, chosen: Settings, defaults: Settings, network: TopologySpec) -> Settings:
    """Return the option that chooses this network, if it is not one of the figure's without options."""
    if figure.topologies is fat_trees:
        return {"topology": (network,)}
    if network in figure.topologies(resolve(chosen, defaults)):
        return {}
    return {"k": (asked_k(figure, network),)} if figure.sized else {}


def asked_k(figure: Figure, network: TopologySpec) -> int:
    """Return the `--k` that selects this network. It need not be a parameter: a star's hosts are not k."""
    for k in range(4, MAX_K + 1, 2) if figure.sized else ():
        if network in figure.topologies(resolve({"k": (k,)}, figure.defaults)):
            return k
    return network.k


def _network(network: TopologySpec) -> object:
    return topos.identity(network.kind, network.params)


def _values(spec: RunSpec, subflows: int, pinned_rate: bool) -> Values:
    """Return the settings that the hosts of the point have, with the congestion control that runs with so
    many subflows."""
    foreign = _OF_REAL if spec.engine in SIMULATED_HOSTS else _OF_SIMULATED
    values = dict(zip(_PATHS, _of(spec), strict=True)) | dict.fromkeys(foreign)
    values["transport.cc"] = in_force(spec.transport.cc, subflows)
    values["transport.sysctls"] = str(sorted((values["transport.sysctls"] or {}).items()))
    values[_RATE] = spec.link.rate_mbps if pinned_rate else None
    if spec.link.nic_queue_pkts == spec.link.queue_pkts:  # it follows the other one
        values["link.nic_queue_pkts"] = None
    return tuple(values.values())


def _at(spec: RunSpec, path: str) -> Any:
    return operator.attrgetter(path)(spec)


def _in_words(spec: RunSpec, paths: Sequence[str]) -> tuple[str, ...]:
    stack = [path.partition(".")[2] for path in paths if path.startswith("stack.")]
    words = [_word(spec, path) for path in paths if not path.startswith("stack.")]
    if stack:
        words.append(f"stack {' '.join(f'{name}={typed(getattr(spec.stack, name))}' for name in stack)}")
    spoken = tuple(dict.fromkeys(filter(None, words)))
    return spoken or tuple(f"{path}={_at(spec, path)}" for path in paths)


def _word(spec: RunSpec, path: str) -> str:
    """Return the words of one setting, also where they are empty elsewhere because it is usual."""
    value = _at(spec, path)
    if path in _SPOKEN:
        return _SPOKEN[path](spec)
    words = RELATIONS[path](spec) if path in RELATIONS else WORDS[path](value) if path in WORDS else ""
    option = BY_PATH.get(path)
    if option is None or (words and value != option.default_value):
        return words
    typed_as = option.text(value)
    return f"{option.flag} {typed_as}" if isinstance(typed_as, str) and typed_as else f"no {option.flag}"


_SPOKEN: Mapping[str, Callable[[RunSpec], str]] = {
    _RATE: lambda spec: f"{spec.link.rate_mbps:g} Mb/s links",
    "link.queue_pkts": lambda spec: f"{queue_label(spec)} queues",
    "link.queue_bytes": lambda spec: f"{queue_label(spec)} queues",
    "dataplane": lambda spec: f"data plane {spec.dataplane}",
    "transport.cc": lambda spec: title(in_force(spec.transport.cc, spec.transport.subflows)),
}
"""The words of settings for which tables and charts have a part of their own."""
