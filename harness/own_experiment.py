"""What a user's file defines: experiments, from their networks, flows, metrics, charts and statements, and
metrics, charts and statements that join any experiment.

A network or flows that a function makes become part of each point's spec as data. So worker processes, other
engines and later commands need no code of the file, and a changed function gives other points.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import operator
import re
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import topos
from analysis.quantities import Quantity
from common.errors import RefabricError, UsageError
from common.text import did_you_mean
from engines.registry import ENGINES, SIMULATOR
from harness.experiment import Experiment, Figure, RateOf
from harness.metrics import metrics as of_tree
from harness.metrics.metrics import TABLES, Metric, ShownIn
from harness.metrics.published import Published, Relation, Source
from harness.metrics.summary_csv import COLUMNS
from harness.options import user_files
from harness.options.fields import BY_PATH, GRID_OPTIONS
from harness.options.options import SETTABLE, SweepOptions, check_axis, field_meant, resolve
from harness.plan.sweeps import Points, Topologies, fat_trees, points_on
from harness.results.point_results import PointResult
from model.spec import (
    MAX_QUEUE_PKTS,
    USUAL,
    LinkEvent,
    RunSpec,
    Settings,
    TopologySpec,
    WorkloadSpec,
    check_name,
    sub_seed,
)
from plots.registry import CHARTS, Chart
from topos import Topology, from_file
from workloads.flow import Flow
from workloads.trace import NAME as TRACE
from workloads.trace import written

Network = Callable[[], Topology]
Flows = Callable[[Sequence[str], int], Iterable[Flow]]
P = ParamSpec("P")
R = TypeVar("R")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_CHART = re.compile(r"[a-z][a-z0-9_]{0,29}")


def experiment(
    name: str,
    title: str,
    *,
    about: str = "",
    network: Network | str | Sequence[Network | str] | None = None,
    flows: Flows | None = None,
    ks: int | Sequence[int] = (4,),
    workloads: str | Sequence[str] = ("one_to_one",),
    subflows: int | Sequence[int] = (1, 8),
    curves: Sequence[Settings] = ({},),
    axes: Mapping[str, Sequence[Any]] | None = None,
    pins: Settings | None = None,
    metrics: Metric | Sequence[Metric] = (),
    charts: str | Chart | Sequence[str | Chart] = ("throughput", "rank"),
    published: Published | Sequence[Published] = (),
) -> Experiment:
    """Return an experiment with one figure, whose points are stored in results/<name>.

    `network` makes its network; a list has several, registered ones as texts such as `ls,4`. Without it, it
    runs on FatTrees of sizes `ks`, which `--k` and `--topology` change; without `flows`
    it runs `workloads`, which `--workload` changes. `flows` gets the hosts' names and a seed. Each of the
    `curves` has values of fields of the spec by path, `{"link.ecn_pkts": 20}`; all curves have those of
    `pins` and run with each value of each of the `axes`. A value is as in the spec, or the text of its
    option. `pins` may also have the values of `engine` (the simulator, if fields of the stack are set) and of
    `transport.cc`, and the number of `seeds`. Options of the command line override all of these but what a
    curve is about. Raises UsageError.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"experiment '{name[:40]}': a name has letters, digits, '_', '.' and '-'")
    charts = _each(charts)
    for each in charts:
        if isinstance(each, str) and each not in CHARTS:
            raise UsageError(f"experiment {name}: chart {each} is unknown; `refabric list` shows all charts")
    curves, settings = _checked(f"experiment {name}", curves, axes or {}, pins or {})
    networks = [] if network is None else _each(network)
    topologies = _own_networks(name, networks) if networks else fat_trees
    points = points_on(topologies, curves)
    figure = Figure(
        name=name,
        title=title,
        about=about or title,
        defaults={
            "k": tuple(_each(ks)),
            "workload": tuple(_each(workloads)) if flows is None else (TRACE,),
            "transport.subflows": tuple(_each(subflows)),
            **settings,
        },
        topologies=topologies,
        points=points if flows is None else _with_flows(name, points, flows),
        charts=tuple(chart for chart in charts if isinstance(chart, str)),
        sized=network is None,
    )
    rows = [_on_own(row, topologies, figure) for row in _each(published)]
    return with_additions(
        figure.alone(), [*_each(metrics), *(each for each in charts if isinstance(each, Chart)), *rows]
    )


def _each(given: Any) -> list[Any]:
    """Return the values of a list; a single value is a list of one."""
    return [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


_FIELDS = tuple(
    path
    for name, part in vars(USUAL).items()
    for path in (name, *(f"{name}.{inner}" for inner in getattr(part, "__dataclass_fields__", ())))
)
"""All fields of the spec, by path."""
_ARGUMENTS = {
    "topology": "network=[...]", "workload": "workloads=(...)", "transport.subflows": "subflows=(...)",
    "transport.cc": 'pins={"transport.cc": (...)}', "engine": 'pins={"engine": (...)}',
}  # fmt: skip
"""What sets a field of which points have one of several values."""
_CHOICES = {
    option.path or option.name: option for option in GRID_OPTIONS if option.name in ("engine", "cc", "seeds")
}
"""What `pins` may have beside fields of the spec: the options by path."""
_ROOMY = USUAL.changed({"link.queue_pkts": MAX_QUEUE_PKTS})
"""A point whose queue holds what other fields ask for: a curve may not have its pin of the queue."""


def _checked(
    what: str, curves: object, axes: Mapping[str, Any], pins: Settings
) -> tuple[Sequence[Settings], dict[str, Any]]:
    """Return the curves, and the figure's layer of pins and axes. Raises UsageError."""
    if isinstance(curves, str | Mapping) or not isinstance(curves, Iterable):
        raise UsageError(f'{what}: curves: give a list, [{{"routing": "ecmp"}}], not {curves!r}')
    of_curves = [_settings(f"{what}: curves", curve, _FIELDS) for curve in curves]
    if not of_curves:
        raise UsageError(f"{what}: curves: give at least one curve, or leave it out")
    chosen = {path: pins[path] for path in _CHOICES if isinstance(pins, Mapping) and path in pins}
    rest = {path: value for path, value in pins.items() if path not in chosen} if chosen else pins
    pinned = _settings(f"{what}: pins", rest, SETTABLE)
    try:
        chosen = {path: _CHOICES[path].read(value) for path, value in chosen.items()}
    except UsageError as error:
        raise UsageError(f"{what}: pins: {error}") from None
    by_axis, swept = dict[str, Any](), set[str]()
    if not isinstance(axes, Mapping):
        raise UsageError(f'{what}: axes: write {{"link.queue_pkts": (20, 50)}}, not {axes!r}')
    for path, values in axes.items():
        check_axis(f"{what}: axes: {path}", values)
        found = [_settings(f"{what}: axes", {path: value}, SETTABLE) for value in values]
        by_axis[path] = [
            {field.removeprefix("stack."): value for field, value in one.items()}
            if path == "stack"
            else one[path]
            for one in found
        ]
        fields = {field for one in found for field in one}
        for both in sorted(fields & (swept | set(pinned))):
            raise UsageError(f"{what}: axes: {both} is in {'axes' if both in swept else 'pins'} too")
        for both in sorted(fields.intersection(*of_curves)):
            raise UsageError(f"{what}: axes: {both}: all curves have a value of it; leave one of them out")
        swept |= fields
    given = [path for one in (swept, pinned, chosen, *of_curves) for path in one]
    if any(path.startswith("stack.") for path in given) and "engine" not in given:
        chosen["engine"] = (SIMULATOR,)
    return of_curves, {**chosen, **pinned, **by_axis}


def _settings(what: str, given: object, known: Sequence[str]) -> dict[str, Any]:
    """Return values of `known` fields of the spec by path, as a point has them; those of the stack are fields
    of their own. Raises UsageError that begins with `what`."""
    if not isinstance(given, Mapping):
        raise UsageError(f'{what}: write values of fields, {{"link.queue_pkts": 20}}, not {given!r}')
    stack = given.get("stack")
    if "stack" in given and not isinstance(stack, Mapping):
        raise UsageError(f'{what}: stack: write its fields, {{"stack.min_rto_ms": 10.0}}, not {stack!r}')
    each = {path: value for path, value in given.items() if path != "stack"}
    each |= {f"stack.{field}": value for field, value in (stack or {}).items()}
    for path in map(str, each):
        argument = _ARGUMENTS.get(path) or _ARGUMENTS.get(path.partition(".")[0])
        if argument and (path not in known or path.startswith(("topology", "workload"))):
            raise UsageError(f"{what}: {path}: write {argument} instead")
        if path not in known and path in _FIELDS:
            raise UsageError(f'{what}: {path}: only a curve can set it: curves=[{{"{path}": ...}}]')
        if path not in known:
            raise UsageError(f"{what}: {path}: a point has no such field; {field_meant(path, known)}")
    try:
        values = {path: _value(path, value) for path, value in each.items()}
        counts = values.get("transport.subflows", 1)
        for count in counts if isinstance(counts, list | tuple) else [counts]:
            _ROOMY.changed({**values, "transport.subflows": count})
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
    return values


def _value(path: str, value: Any) -> Any:
    """Return the value of one field, which may be the text of its option. Raises UsageError."""
    option, usual = BY_PATH.get(path), operator.attrgetter(path)(USUAL)
    if isinstance(value, Mapping) and isinstance(usual, Mapping):
        value = [f"{name}={each}" for name, each in value.items()]
    if option and option.multiple:
        value = tuple(_each(value))
        if all(isinstance(each, str) for each in value):
            return option.parse(option.flag, value)
    elif option and isinstance(value, str):
        value = option.parse(option.flag, value)
    if path == "engine":
        check_name("engine ", value, ENGINES)
    parts = value if path == "events" else [value]
    kind = LinkEvent if path == "events" else type(usual)
    if not isinstance(usual, int | float) and not all(isinstance(each, kind) for each in parts):
        form = f"value as in {option.flag} {option.metavar}" if option else kind.__name__
        raise UsageError(f"{path}: write a {form}, not {value!r}")
    return value


Addition = Metric | Chart | Published
"""What a user's file adds to the figures of an experiment."""


def with_additions(experiment: Experiment, more: Sequence[Addition], file: str = "") -> Experiment:
    """Return the experiment with these metrics, charts and statements, of a user's `file`, in each of its
    figures. Raises UsageError for one whose name is in use."""
    what = f"{file}: " if file else f"experiment {experiment.name}: "
    charts = tuple(each for each in more if isinstance(each, Chart))
    columns = tuple(each for each in more if isinstance(each, Metric) and each.of is not None)
    rows = tuple(each for each in more if isinstance(each, Published))
    for row in rows:
        if row.topology == from_file.KIND and not row.shape:
            raise UsageError(f"{what}statement '{row.words[:60]}': name its network, e.g. network='ft,8'")
    for each in charts:
        if each.name in CHARTS or not _CHART.fullmatch(each.name):
            raise UsageError(f"{what}chart {each.name[:30]}: choose a new name in lower case")
    figures = []
    for figure in experiment.figures:
        names = [of.name for of in (*figure.metrics, *columns)]
        names += [of.name for of in (*figure.own_charts, *charts)]
        twice = next((name for name, count in Counter(names).items() if count > 1), "")
        if twice:
            raise UsageError(f"{what}{twice}: there are two of this name; choose another one")
        figures.append(
            dataclasses.replace(
                figure,
                metrics=(*figure.metrics, *columns),
                own_charts=(*figure.own_charts, *charts),
                charts=(*figure.charts, *(each.name for each in charts)),
                published=(*figure.published, *rows),
                added=(*figure.added, *([file] if file else [])),
            )
        )
    return dataclasses.replace(experiment, figures=tuple(figures))


def statement(
    metric: Metric | str,
    relation: str,
    value: float,
    *,
    network: str = from_file.KIND,
    workload: str = "one_to_one",
    subflows: int = 8,
    where: Mapping[str, Any] | None = None,
    tolerance: float = 0.0,
    because: str = "",
    words: str = "",
    paper: str = "",
    citation: str = "",
    source: str = Source.EXPECTED,
    **more: Any,
) -> Published:
    """Return the statement that a metric is `<`, `about`, `>=` or `>` a value.

    `metric` is one of the file's own, or the name of a column of summary.csv. `network` is as on the command
    line (`ft,8`), by default the own network of the experiment that has it. `where` has what its points have
    instead of the settings of their figure (`Published.where`); `more` are further fields of a `Published`.
    Raises UsageError.
    """
    known = {each.name: each for each in TABLES}
    if isinstance(metric, str) and metric not in known:
        raise UsageError(
            f"statement: metric {metric}: {did_you_mean(metric, known)}metrics are: {', '.join(known)}"
        )
    of = known[metric] if isinstance(metric, str) else metric
    kind, params = (from_file.KIND, {}) if network == from_file.KIND else topos.parse(network)
    if params:
        topos.check(kind, params)
    try:
        bound, origin = Relation(relation), Source(source)
    except ValueError as error:
        choice = f"{', '.join(Relation)}; source is one of {', '.join(Source)}"
        raise UsageError(f"statement on {of.name}: {error}; a relation is one of {choice}") from None
    return Published(
        of, kind, params.get(topos.TOPOLOGIES[kind].size.name, 0), workload, subflows, bound, value, origin,
        words or f"{of.about} {bound.words} {value:g} {of.unit}".strip(), paper or "own",
        citation or paper or "own", tolerance, because, where=where or {},
        shape=topos.shape(kind, params) if params else (), **more,
    )  # fmt: skip


def _on_own(row: Published, topologies: Topologies, figure: Figure) -> Published:
    """Return a statement that names no network as one on the first network of the figure."""
    if row.topology != from_file.KIND or row.shape:
        return row
    network = topologies(resolve({}, figure.defaults))[0]
    kind, params = network.kind, dict[str, Any](network.params)
    if kind == from_file.KIND:
        return dataclasses.replace(row, shape=tuple(params.items()))
    k = params[topos.TOPOLOGIES[kind].size.name]
    return dataclasses.replace(row, topology=kind, k=k, shape=topos.shape(kind, params))


def metric(
    name: str, unit: str, about: str, of: Callable[[PointResult], float | None], **more: Any
) -> Metric:
    """Return a metric that `of` reads off one point; tables show it under its name. Raises UsageError for the
    name of a column of summary.csv."""
    if name in COLUMNS:
        raise UsageError(f"metric {name}: refabric has a column of this name; choose another")
    shown = {"head": name, "shown": ShownIn.RUN | ShownIn.REPORT, **more}
    return Metric(Quantity(name, unit, about), guarded(f"metric {name}", of), **shown)


def between(
    name: str,
    unit: str,
    about: str,
    of: Callable[[PointResult], float | None],
    one: Mapping[str, Any],
    other: Mapping[str, Any],
) -> Metric:
    """Return the metric of a statement that compares two values: what `of` reads off points with the values
    `one`, over that of points with `other`, at the same seed (`harness/metrics/metrics.py`)."""
    return of_tree.between(Quantity(name, unit, about), guarded(f"metric {name}", of), one, other)


def chart(name: str, title: str, reading: str, function: Callable[[Sequence[PointResult]], Any]) -> Chart:
    """Return a chart that `function` draws from the points: a matplotlib.figure.Figure, or None."""
    return Chart(name, "", title, reading, guarded(f"chart {name}", function))


def _own_networks(name: str, networks: Sequence[Network | str]) -> Topologies:
    """Return the topologies of a figure on these networks; each function is called once. One network has the
    name of its experiment, several those of their functions."""

    @functools.cache
    def made() -> tuple[TopologySpec, ...]:
        return tuple(each for network in networks for each in of(network))

    def of(network: Network | str) -> Sequence[TopologySpec]:
        if isinstance(network, str):
            return user_files.topologies(f"experiment {name}: network", (network,))
        built = guarded(f"experiment {name}: its network", network)()
        if not isinstance(built, Topology):
            raise UsageError(f"experiment {name}: its network is a {type(built).__name__}, not a Topology")
        label = getattr(network, "__name__", name) if len(networks) > 1 else name
        return [TopologySpec(from_file.KIND, {"name": label, "network": from_file.text_of(built)})]

    return lambda _options: list(made())


def _with_flows(name: str, points: Points, flows: Flows) -> Points:
    """Return the points with the flows that the function makes for their hosts and seed. If all of them have
    a size, there is no warm-up in which they could end, unless somebody chose one."""

    @functools.cache
    def made(kind: str, params: tuple[tuple[str, int | str], ...], seed: int) -> tuple[WorkloadSpec, bool]:
        net = topos.build(kind, dict(params))
        hosts = [net.nodes[host].name for host in net.hosts]
        what = f"experiment {name}: its flows"
        drawn = usable_flows(what, flows, hosts, sub_seed(seed, "workload"))
        sized = all(flow.size_bytes for flow in drawn)
        return WorkloadSpec(TRACE, {"name": name, "flows": written(drawn)}), sized

    def own(spec: RunSpec, chosen_warmup: bool) -> RunSpec:
        if spec.workload.matrix != TRACE or spec.workload.params.get("flows"):
            return spec
        topology = spec.topology
        workload, sized = made(topology.kind, tuple(topology.params.items()), spec.seed)
        warmup_s = 0.0 if sized and not chosen_warmup else spec.warmup_s
        return dataclasses.replace(spec, workload=workload, warmup_s=warmup_s)

    def with_own(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        return [own(spec, "warmup_s" in options.chosen) for spec in points(options, rate_of)]

    return with_own


def usable_flows(what: str, flows: Flows, hosts: Sequence[str], seed: int) -> list[Flow]:
    """Call the function; return its flows. Raises UsageError that begins with `what`."""

    def drawn() -> list[object]:
        found = flows(hosts, seed)
        if found is None:
            raise UsageError(f"{what}: the function returns nothing; let it return a list of Flow(src, dst)")
        return list(found)

    listed = guarded(what, drawn, written_in=flows)()
    if not listed:
        raise UsageError(f"{what}: the function returns an empty list; a point needs a flow")
    known = frozenset(hosts)
    return [_usable(f"{what}: flow {number}", flow, known) for number, flow in enumerate(listed, 1)]


def _usable(what: str, flow: object, hosts: Collection[str]) -> Flow:
    if not isinstance(flow, Flow):
        raise UsageError(f"{what} is a {type(flow).__name__}; write Flow(src, dst)")
    what = f"{what}, from {flow.src} to {flow.dst}"
    for end in (flow.src, flow.dst):
        if end not in hosts:
            names = sorted(hosts)
            few = f"{', '.join(names[:3])} and {len(names) - 3} more" if len(names) > 4 else ", ".join(names)
            raise UsageError(f"{what}: the network has no host {end}; its hosts are {few}")
    if flow.src == flow.dst:
        raise UsageError(f"{what}: a host cannot send to itself")
    try:
        size, start = int(flow.size_bytes), float(flow.start_s)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(f"{what}: size_bytes and start_s must be numbers") from None
    if size != flow.size_bytes or size < 0:
        raise UsageError(f"{what}: size_bytes must be a whole number from 0, not {flow.size_bytes}")
    if not 0 <= start < math.inf:
        raise UsageError(f"{what}: start_s must be a number from 0, not {flow.start_s}")
    return dataclasses.replace(flow, size_bytes=size, start_s=start)


def guarded(
    what: str, function: Callable[P, R], *, written_in: Callable[..., object] | None = None
) -> Callable[P, R]:
    """Return `function` with its errors as UsageErrors that name `what`, the file and the line.

    The file is that of `written_in`, if it is given, because `function` only calls it.
    """
    code = getattr(inspect.unwrap(written_in or function), "__code__", None)
    file = code.co_filename if code else ""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RefabricError:
            raise
        except Exception as error:
            raise UsageError(f"{what}: {described(error, file)}") from error

    return called


def described(error: Exception, file: str) -> str:
    """Return an exception with the last line of `file` that it passed: `mine.py, line 3: NameError: ...`."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}, line {lines[-1]}: {text}" if lines else text
