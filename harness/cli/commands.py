"""The command `refabric`: doctor, list, plan, run, status, plot, shell, calibrate, kernel.

Exit codes: 0 all ok; 1 some points failed or suspect (results kept); 2 usage; 3 host unfit or disk full;
130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

import topos
from common.errors import UsageError
from common.version import VERSION
from controllers.schedulers import SCHEDULERS
from engines import registry as engines
from engines.emulation.dataplanes.registry import DATAPLANES, FABRIC
from harness.catalogue import Catalogue
from harness.cli import advice as advising
from harness.cli import table
from harness.cli.completion import completion
from harness.cli.config import Configurable, config_options
from harness.cli.docs import docs
from harness.cli.keeping import export, results
from harness.cli.kernel import kernel
from harness.cli.manual import manual
from harness.cli.new import new
from harness.cli.options import (
    OneLineErrors,
    dataplane_options,
    experiment_argument,
    interruptible,
    json_option,
    results_option,
    sweep_options,
    typed,
)
from harness.cli.progress import (
    PlainProgress,
    duration,
    point_fields,
)
from harness.cli.reading import compare, report
from harness.cli.run import (
    Request,
    emit_verdicts,
    files_in,
    metrics_of,
    published_of,
    run_experiment,
    show_claims,
)
from harness.cli.watch import watch
from harness.execute import sweep
from harness.execute.sweep import Job, pending_jobs, wall_s
from harness.experiment import Experiment
from harness.plan import session
from harness.plan.fields import SUBFLOWS, K, Option
from harness.plan.labels import label
from harness.plan.options import Given, openflow_of, retries_of, sweep_workloads
from harness.plan.parsers import limited, whole
from harness.plan.profiles import PROFILES
from harness.report import report as reporting
from harness.results import store, summary
from harness.results.load import load, loaded
from harness.streams import fitted, write_json
from model.congestion import CONGESTION_CONTROLS
from model.reasons import texts
from model.spec import TopologySpec
from plots.registry import CHARTS
from workloads import matrices
from workloads.matrices import MATRICES

LIST_WIDTH = 28
MAX_RETRIES = 100


@click.command("list")
@json_option
@click.pass_obj
def list_(catalogue: Catalogue, as_json: bool) -> None:
    """List experiments, charts, topologies, workloads, engines and so on, one per line."""
    known = {
        "experiments": {e.name: e.title for e in catalogue},
        "charts": {chart.name: chart.title for chart in CHARTS.values()},
        "topologies": {kind: f"{f.title}, e.g. {f.example}" for kind, f in topos.TOPOLOGIES.items()},
        "workloads": {
            matrices.label(name, MATRICES[name].defaults): MATRICES[name].title for name in sweep_workloads()
        },
        "congestion controls": {name: cc.title for name, cc in CONGESTION_CONTROLS.items()},
        "schedulers": {name: scheduler.about for name, scheduler in SCHEDULERS.items()},
        "data planes": {name: plane.about for name, plane in DATAPLANES.items()},
        "engines": {name: engines.ABOUT.get(name, "") for name in engines.ENGINES},
        "profiles": {p.name: p.about for p in PROFILES.values()},
    }
    if as_json:
        write_json(sys.stdout, known)
        return
    for heading, entries in known.items():
        click.echo(f"{heading}:")
        for name, about in entries.items():
            click.echo(fitted(f"  {name:<{LIST_WIDTH}} {about}".rstrip(), LIST_WIDTH + 3))


@click.command(cls=Configurable)
@experiment_argument
@config_options
@sweep_options
@results_option
@json_option
def plan(chosen: Experiment, results: Path, as_json: bool, **options: Any) -> None:
    """Show the points of a run, their order, expected time and link rate, and start nothing."""
    asked = Given.parsed(**options)
    stored = store.index(results / chosen.folder)
    made = session.make_plan(chosen, asked, session.engine_for(chosen, asked), stored)
    pending = {job.name for job in pending_jobs(made.jobs, stored, force=False)}
    to_run = {job.name for job in sweep.to_run(made.jobs, stored, force=False, retries=retries_of(asked))}
    for index, job in enumerate(made.jobs, 1):
        todo = "to run" if job.name in pending else "to retry" if job.name in to_run else "finished"
        if as_json:
            fields = _job_fields(job)
            write_json(sys.stdout, {"event": "job", "index": index, "state": todo, **fields})
        else:
            rate = "auto" if job.rate.rate_mbps is None else f"{job.rate.rate_mbps:g} Mb/s"
            head = f"{index:3} {todo:8} {duration(job.expected_s):>11} {rate:>9} "
            click.echo(fitted(head + label(job.spec), len(head)))
    left = [job for job in made.jobs if job.name in to_run]
    advice = advising.on(made.jobs, to_run)
    if as_json:
        advising.tell(advice, as_json)
        write_json(sys.stdout, {"event": "total", "points": len(made.jobs), "to_run": len(left),
                                "expected_s": wall_s(left)})  # fmt: skip
        return
    total = f"{len(made.jobs)} points, {len(left)} to run, about {duration(wall_s(left))}{_turns(left)}"
    for line in (total, *made.rate_lines(), *made.left_out()):
        click.echo(fitted(line, 2))
    advising.tell(advice, as_json)


def _turns(left: Sequence[Job]) -> str:
    """Return the time of points that run side by side and of points that run alone, if there are both."""
    alone = [job for job in left if job.at_once == 1]
    if not alone or len(alone) == len(left):
        return ""
    shared = [job for job in left if job.at_once > 1]
    return f": {duration(wall_s(shared))} side by side, then {duration(wall_s(alone))} one by one"


def _job_fields(job: Job) -> dict[str, Any]:
    """Return a job as fields for JSON; name and rate are null while the rate is not known."""
    spec = job.spec.to_json()
    spec["link"]["rate_mbps"] = job.rate.rate_mbps
    return {
        "point": None if job.rate.rate_mbps is None else job.name,
        "expected_s": job.expected_s,
        "rate_mbps": job.rate.rate_mbps,
        "rate_how": job.rate.how,
        "spec": spec,
    }


@click.command(cls=Configurable)
@experiment_argument
@config_options
@sweep_options
@results_option
@click.option("--force", is_flag=True, help="Run finished points again.")
@click.option(
    "--retry-suspect",
    "retries",
    type=click.IntRange(0, MAX_RETRIES),
    metavar="N",
    help="Run points that are suspect because of the machine alone up to N more times. [default: "
    + ", ".join(f"{p.retries} in profile {p.name}" for p in PROFILES.values())
    + "] Baselines run up to three times in all, unless N is 0.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Run the points on the workers of the Dask scheduler at ADDRESS (tcp://HOST:PORT).",
)
@click.option(
    "--insecure", is_flag=True, help="Let root connect to a scheduler on another machine without TLS."
)
@json_option
def run(**given: Any) -> int:
    """Run the points of an experiment that are not finished yet, then show and draw the results."""
    asked = request_of(**given)
    with interruptible():
        return run_experiment(asked)


def request_of(
    *,
    chosen: Experiment,
    results: Path,
    force: bool,
    retries: int | None,
    dask: str | None,
    insecure: bool,
    as_json: bool,
    **options: Any,
) -> Request:
    """Return what `refabric run` was asked for, by its parsed parameters. Raises UsageError."""
    asked = Given.parsed(**options)
    return Request(chosen, asked, results, as_json, force, retries_of(asked, retries), dask, insecure)


def _check_plan(given: dict[str, Any]) -> None:
    """Raise UsageError for an experiment that cannot be planned."""
    asked = request_of(**given)
    session.make_plan(asked.experiment, asked.given, session.engine_for(asked.experiment, asked.given))


run.check = _check_plan


@click.command(cls=Configurable)
@experiment_argument
@config_options
@sweep_options
@results_option
@json_option
def status(chosen: Experiment, results: Path, as_json: bool, **options: Any) -> None:
    """Show which points are ok, suspect, failed or missing."""
    asked = Given.parsed(**options)
    stored = store.scan(results / chosen.folder)
    made = session.make_plan(chosen, asked, session.engine_for(chosen, asked), stored.entries)
    found = loaded(chosen, results, made, stored)
    judged = {j.point.name: j for j in found.points}
    planned = [job.name for job in made.jobs if job.rate.rate_mbps is not None]
    for error in found.broken:
        click.echo(f"refabric: {error}", err=True)
    for name in dict.fromkeys((*planned, *judged)):
        _print_state(name, judged.get(name), name in planned, chosen.folder, as_json)
    if not made.certain:
        click.echo(
            "points at a link rate that is to be measured first have no names yet: give --rate", err=True
        )
    if not as_json:
        done = sum(name in judged and judged[name].point.finished for name in planned)
        click.echo(f"{done} of {len(made.jobs)} planned points finished; {len(judged)} stored in all")


def _print_state(
    name: str, judged: summary.Judged | None, planned: bool, experiment: str, as_json: bool
) -> None:
    if as_json:
        fields = point_fields(experiment, judged) if judged else {"point": name, "status": "missing"}
        write_json(sys.stdout, {"event": "status", "planned": planned, **fields})
        return
    reasons = f"  ({texts(judged.reasons)})" if judged and judged.reasons else ""
    told = judged.state if judged else "missing"
    click.echo(f"{told:8} {name}{'' if planned else '  (not of this plan)'}{reasons}")


@click.command()
@experiment_argument
@typed(replace(SUBFLOWS, help="Show these subflow counts on the axes, measured or not."))
@results_option
@json_option
def plot(chosen: Experiment, subflows: tuple[int, ...] | None, results: Path, as_json: bool) -> int:
    """Show and draw every stored point. Damaged points are listed and left out (exit code 1)."""
    found = load(chosen, results, session.make_plan(chosen, Given(), session.engine_for(chosen, Given())))
    for error in found.broken:
        click.echo(f"refabric: {error}", err=True)
    if not found.points:
        where = results / chosen.folder
        raise UsageError(
            f"nothing to draw in {where}: run `refabric run {chosen.name}` first, or give --results"
        )
    drawn = reporting.draw_charts(found, subflows or ())
    charts = [path for paths in drawn.values() for path in paths]
    if not as_json:
        table.print_results(sys.stdout, found.points, published_of(chosen), metrics_of(chosen))
    for shown in found.figures:
        if shown.claims:
            continue
        if as_json:
            emit_verdicts(shown.figure, shown.verdicts)
        else:
            table.print_verdicts(sys.stdout, shown.figure, shown.verdicts)
    human = sys.stderr if as_json else sys.stdout
    show_claims(human, found, as_json)
    judged = [verdict for shown in found.figures if not shown.claims for verdict in shown.verdicts]
    closing = table.Closing(found.points, published_of(chosen), judged)
    table.print_details(human, closing)
    table.print_closing(human, closing, files_in(results / chosen.folder, drawn))
    if as_json:
        write_json(sys.stdout, {"event": "charts", "charts": [str(path) for path in charts]})
        return 1 if found.broken else 0
    for path in charts:
        if path.suffix == ".svg":
            click.echo(str(path))
    return 1 if found.broken else 0


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Test whether this machine can run experiments, and say what to install if not."""
    from setup import doctor as checks  # noqa: PLC0415

    return checks.main(json=as_json)


def _mbps(flag: str, text: Any) -> float:
    """Parse a link rate in Mb/s; there is no `auto` here."""
    return float(limited("link.rate_mbps")(flag, text))


def _with_hosts(flag: str, text: Any) -> str:
    """Parse the name of an engine whose hosts run programs."""
    if text not in engines.LINUX_HOSTS:
        raise UsageError(f"{flag} {text}: no hosts to log in to; choose {' or '.join(engines.LINUX_HOSTS)}")
    return str(text)


def _shell_in_a_guest(topology: str, rate: float, queue: int, chosen: Given) -> int:
    from engines.linux import shell as prompt  # noqa: PLC0415

    if chosen.settings.get("dataplane", FABRIC) != FABRIC:
        raise UsageError(f"guests have the data plane {FABRIC} alone; choose --engine {engines.MININET}")
    openflow_of(chosen)
    return prompt.main(topology, rate, queue)


@click.command()
@click.argument("topology")
@typed(Option("rate", "MBPS", "Set the link rate in Mb/s. [default: 10]", _mbps, default=10.0))
@typed(
    Option("queue", "PKTS", "Limit the queue of every port. [default: 100]", whole(1, "packet"), default=100)
)
@typed(
    Option(
        "engine",
        "NAME",
        "Run the hosts in this engine: mininet, or linux (virtual time, no root). [default: mininet]",
        _with_hosts,
        default=engines.MININET,
    )
)
@dataplane_options
def shell(
    topology: str,
    rate: float,
    queue: int,
    engine: str,
    **options: Any,
) -> int:
    """Open Mininet's prompt on a running network: refabric shell ft,4."""
    chosen = Given.parsed(**options)
    topos.build(*topos.parse(topology))
    if engine == engines.LINUX:
        return _shell_in_a_guest(topology, rate, queue, chosen)
    from engines.emulation.hosts import shell as prompt  # noqa: PLC0415

    dataplane = chosen.settings.get("dataplane", FABRIC)
    return prompt.main(topology, rate, queue, dataplane=dataplane, openflow=openflow_of(chosen))


@click.command()
@typed(replace(K, help="Measure for FatTrees of these sizes. [default: 8]", default=(8,)))
@json_option
def calibrate(k: tuple[int, ...], as_json: bool) -> None:
    """Measure the highest link rate that this machine carries, and keep it for later runs."""
    from engines.emulation.calibration import calibrate as measuring  # noqa: PLC0415

    human = sys.stderr if as_json else sys.stdout
    with interruptible():
        for size in k:
            topology = TopologySpec("fat_tree", {"k": size})
            rate_mbps = float(measuring.calibrate(topology, PlainProgress(human)))
            if as_json:
                write_json(sys.stdout, {"event": "rate", "k": size, "rate_mbps": rate_mbps})
            else:
                click.echo(f"k={size}: {rate_mbps:g} Mb/s")


COMMANDS = (
    doctor,
    list_,
    plan,
    run,
    status,
    plot,
    report,
    compare,
    watch,
    calibrate,
    shell,
    kernel,
    new,
    results,
    export,
    completion,
    manual,
    docs,
)


def next_steps(folder: Path = Path(__file__).parents[2]) -> str:
    """Return what somebody may do next, as run_mptcp.sh --help says it; an installed wheel has no such
    script."""
    if (folder / "run_mptcp.sh").exists():
        return Path(__file__).with_name("next_steps.txt").read_text()
    return _WITHOUT_A_CLONE


_WITHOUT_A_CLONE = """Next steps:
  refabric run validation       the simulator beside theory: a minute, without root
  refabric list                 experiments, networks, workloads
  refabric new experiment mine.py        an experiment of your own
"""


def command_line(catalogue: Catalogue) -> click.Group:
    """Return the command `refabric` with these experiments."""
    group = OneLineErrors(
        "refabric",
        commands=list(COMMANDS),
        help="Published datacenter-transport experiments, on real Linux stacks or simulated, by one command.",
        epilog=f"\b\n{next_steps()}",
        context_settings={"help_option_names": ["-h", "--help"], "obj": catalogue},
    )
    return click.version_option(VERSION, prog_name="refabric")(group)
