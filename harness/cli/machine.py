"""`refabric doctor`, `shell`, `calibrate`, `kernel` and `worker`: what this machine can do."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import click

from common.errors import HostUnfitError, UsageError
from engines import registry as engines
from engines.emulation.kernel import mptcp_genl
from engines.emulation.kernel.mptcp_genl import PathManagement
from engines.emulation.sandbox import client
from engines.linux.kernel import store
from engines.linux.kernel.source import PACKAGE, VERSION
from harness.cli.options import flag_of, interruptible, json_option, network_options, typed, warn
from harness.cli.progress import PlainProgress, duration
from harness.options import user_files
from harness.options.fields import BY_PATH, CC, SUBFLOWS, K, Option
from harness.options.options import by_path, check_openflow, option_name
from harness.options.parsers import limited, whole
from harness.streams import unescaped, write_json
from model.congestion import BASELINE, CONGESTION_CONTROLS, COUPLED_DEFAULT
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec
from setup import kernel_build as building
from setup.kernel_build import Moment
from topos import from_file


@click.command(short_help="Test whether this machine can run experiments.")
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


SHELL_RATE_MBPS, SHELL_SUBFLOWS = 10.0, 8


@click.command(short_help="Open Mininet's prompt on a running network.")
@click.argument("topology", metavar="NETWORK")
@typed(
    Option("rate", "MBPS", f"Set the link rate in Mb/s. [default: {SHELL_RATE_MBPS:g} or the file's]", _mbps)
)
@typed(
    Option("queue", "PKTS", "Limit the queue of every port. [default: 100]", whole(1, "packet"), default=100)
)
@typed(
    replace(
        SUBFLOWS,
        metavar="N",
        help=f"Give MPTCP connections N subflows, from 1 to 32. [default: {SHELL_SUBFLOWS}]",
    )
)
@typed(
    replace(
        CC,
        metavar="NAME",
        help=f"Let all hosts use this congestion control: {', '.join(CONGESTION_CONTROLS)}, or a file. "
        f"[default: {COUPLED_DEFAULT}, which is {BASELINE} for TCP; {BASELINE} where this machine lacks it]",
    )
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
@network_options
def shell(
    topology: str,
    rate: float | None,
    queue: int,
    subflows: tuple[int, ...] | None,
    cc: tuple[str, ...] | None,
    engine: str,
    **options: Any,
) -> int:
    """Open Mininet's prompt on a running network: refabric shell ft,4, or file:net.json.

    Hosts have the congestion control and the sysctls of a run, and know each other's names.
    """
    given = by_path({"subflows": subflows, "cc": cc, **options})
    for path, values in given.items():
        if isinstance(values, tuple) and len(values) > 1:
            raise UsageError(f"{flag_of(option_name(path))}: a prompt has one network; give one value")
    (network,) = user_files.topologies("NETWORK", (topology,))
    named = from_file.rate_mbps(str(network.params["network"])) if network.kind == from_file.KIND else 0.0
    link = LinkSpec(rate or named or SHELL_RATE_MBPS, queue_pkts=queue, nic_queue_pkts=queue)
    mptcp = subflows[0] if subflows else SHELL_SUBFLOWS
    if not subflows and engine == engines.MININET and mptcp_genl.support().level is PathManagement.NONE:
        mptcp = 1
    coupled, note = engines.ENGINES[engine]().coupled_cc()
    if not cc and note:
        warn(note)
    check_openflow(given)
    transport = TransportSpec(mptcp, cc[0] if cc else coupled if mptcp > 1 else BASELINE)
    chosen = {path: value for path, value in given.items() if path in BY_PATH}
    spec = RunSpec(link, network, transport, traffic="native", engine=engine).changed(chosen)
    if engine == engines.LINUX:
        from engines.linux import shell as guest  # noqa: PLC0415

        with unescaped():
            return guest.main(spec)
    from engines.emulation.hosts import shell as prompt  # noqa: PLC0415

    with unescaped():
        return prompt.main(spec, f"refabric shell {topology}")


@click.command(short_help="Measure the highest link rate that this machine carries.")
@typed(replace(K, help="Measure for FatTrees of these sizes. [default: 8]", default=(8,)))
@json_option
def calibrate(k: tuple[int, ...], as_json: bool) -> None:
    """Measure the highest link rate that this machine carries, and keep it for later runs."""
    from engines.emulation import calibrate as measuring  # noqa: PLC0415

    human = sys.stderr if as_json else sys.stdout
    with interruptible():
        for size in k:
            topology = TopologySpec("fat_tree", {"k": size})
            rate_mbps = float(measuring.calibrate(topology, PlainProgress(human)))
            if as_json:
                write_json(sys.stdout, {"event": "rate", "k": size, "rate_mbps": rate_mbps})
            else:
                click.echo(f"k={size}: {rate_mbps:g} Mb/s")


BUILD = "refabric kernel build"
NOTE_PCT = 10


@click.group(short_help="Build, show or remove the kernel of --engine linux.")
def kernel() -> None:
    """Build, show or remove the kernel that --engine linux runs in virtual time."""


@kernel.command("build", short_help="Build the kernel: about 8 minutes on two CPUs.")
@click.option("--any-version", is_flag=True, help=f"Accept another version of {PACKAGE} than {VERSION}.")
@click.option("--force", is_flag=True, help="Build it even if it is built already.")
@json_option
def kernel_build(any_version: bool, force: bool, as_json: bool) -> None:
    """Build the kernel from the packaged source: about 8 minutes on two CPUs, as an ordinary user."""

    def progress(moment: Moment) -> None:
        if as_json:
            write_json(sys.stdout, {"event": "build", **asdict(moment)})
        else:
            click.echo(_step(moment))

    with interruptible():
        built = building.build(progress, any_version, force)
    _show_kernels((built,), as_json)


@kernel.command("status", short_help="Show the built kernels.")
@json_option
def kernel_status(as_json: bool) -> int:
    """Show the built kernels; exit with 1 if none fits this version of refabric."""
    found = store.stored()
    _show_kernels(found, as_json)
    if store.current() is None and not as_json:
        click.echo(f"no kernel is built for this version of refabric: {BUILD}")
    return 0 if store.current() else 1


@kernel.command("remove")
def kernel_remove() -> None:
    """Remove all built kernels, and what interrupted builds left."""
    freed = building.remove()
    click.echo(f"{freed / 1e6:.0f} MB freed in {store.folder()}" if freed else "there is nothing to remove")


def first_build(note: Callable[[str], None]) -> None:
    """Build the kernel for a run that lacks it. `note` gets a line at each step and each NOTE_PCT percent.

    Raises HostUnfitError if this machine cannot build it, RunError if a step fails.
    """
    said: set[tuple[str, int]] = set()

    def progress(moment: Moment) -> None:
        mark = moment.step, int(moment.pct // NOTE_PCT)
        if mark not in said:
            said.add(mark)
            note(f"kernel: {_step(moment)}")

    note("the engine linux needs a kernel, which is built once: about 8 minutes on two CPUs")
    note(f"kernel: {kernel_words(building.build(progress))}")


def _step(moment: Moment) -> str:
    ends = [duration(each) for each in (moment.left_s, moment.most_left_s) if each is not None]
    left = f", {' to '.join(dict.fromkeys(ends))} left" if ends else ""
    return f"{moment.pct:3.0f} %  {moment.step}{left}"


def _show_kernels(kernels: tuple[store.Kernel, ...], as_json: bool) -> None:
    for each in kernels:
        if as_json:
            write_json(sys.stdout, {"event": "kernel", **each.to_json()})
        else:
            click.echo(f"{each.path}\n  {kernel_words(each)}")


def kernel_words(each: store.Kernel) -> str:
    """Describe a kernel in one line."""
    fits = "" if each.is_current else "; of another version of refabric: not used"
    controls = ", ".join(each.congestion_controls)
    return f"Linux {each.version} ({each.package}), {controls}; built {each.built_at[:16]}{fits}"


@click.command(short_help="Run points of other machines' sweeps.")
@click.argument("address")
@click.option("--host", metavar="ADDRESS", required=True, help="Listen at this address of a private network.")
@click.option("--nthreads", type=click.IntRange(1), metavar="N", help="Run N points at once. [default: CPUs]")
@click.option("--memory-limit", metavar="BYTES", help="Use at most this memory. [default: all]")
@click.option("--insecure", is_flag=True, help="Let root's helper serve a scheduler without TLS.")
@click.option("--real-hosts", is_flag=True, help="Offer real hosts in real time, one point at a time.")
def worker(
    address: str, host: str, nthreads: int | None, memory_limit: str | None, insecure: bool, real_hosts: bool
) -> None:
    """Run points of other machines' sweeps, as the Dask scheduler at ADDRESS hands them out, until Ctrl-C.

    Real hosts need root: sudo starts the root helper, and the worker itself is the user's process.
    """
    if real_hosts and not client.available():
        raise HostUnfitError(f"real hosts need root; run: sudo .venv/bin/refabric worker {address} ...")
    from distributed.cli.dask_worker import main  # noqa: PLC0415 -- 0.6 s

    from harness.execute.dask_cluster import check_address  # noqa: PLC0415

    check_address(address, client.available(), insecure, "ADDRESS")
    argv = [address, "--host", host, "--no-dashboard"]
    if memory_limit:
        argv += ["--memory-limit", memory_limit]
    if real_hosts:  # the helper's connection is this process's, so no nanny starts another one
        argv += ["--no-nanny", "--nthreads", "1", "--resources", "emulation=1"]
    elif nthreads:
        argv += ["--nthreads", str(nthreads)]
    # Not the usual folder in /tmp, which anybody may have made: Dask imports from it.
    with tempfile.TemporaryDirectory(prefix="refabric-worker-") as folder:
        main([*argv, "--local-directory", folder], standalone_mode=False)
