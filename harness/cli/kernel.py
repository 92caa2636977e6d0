"""`refabric kernel`: build, show and remove the kernel of the engine `linux`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict

import click

from engines.linux.kernel import store
from engines.linux.kernel.source import PACKAGE, VERSION
from harness.cli.options import interruptible, json_option
from harness.cli.progress import duration
from harness.streams import write_json
from setup.kernel.progress import Moment

BUILD = "refabric kernel build"
NOTE_PCT = 10


@click.group(short_help="Build, show or remove the kernel of --engine linux.")
def kernel() -> None:
    """Build, show or remove the kernel that --engine linux runs in virtual time."""


@kernel.command(short_help="Build the kernel: about 8 minutes on two CPUs.")
@click.option("--any-version", is_flag=True, help=f"Accept another version of {PACKAGE} than {VERSION}.")
@click.option("--force", is_flag=True, help="Build it even if it is built already.")
@json_option
def build(any_version: bool, force: bool, as_json: bool) -> None:
    """Build the kernel from the packaged source: about 8 minutes on two CPUs, as an ordinary user."""
    from setup.kernel import build as building  # noqa: PLC0415

    def progress(moment: Moment) -> None:
        if as_json:
            write_json(sys.stdout, {"event": "build", **asdict(moment)})
        else:
            click.echo(_where(moment))

    with interruptible():
        built = building.build(progress, any_version, force)
    _show((built,), as_json)


@kernel.command(short_help="Show the built kernels.")
@json_option
def status(as_json: bool) -> int:
    """Show the built kernels; exit with 1 if none fits this version of refabric."""
    found = store.stored()
    _show(found, as_json)
    if store.current() is None and not as_json:
        click.echo(f"no kernel is built for this version of refabric: {BUILD}")
    return 0 if store.current() else 1


@kernel.command()
def remove() -> None:
    """Remove all built kernels, and what interrupted builds left."""
    from setup.kernel import build as building  # noqa: PLC0415

    freed = building.remove()
    click.echo(f"{freed / 1e6:.0f} MB freed in {store.folder()}" if freed else "there is nothing to remove")


def first_build(note: Callable[[str], None]) -> None:
    """Build the kernel for a run that lacks it. `note` gets a line at each step and each NOTE_PCT percent.

    Raises HostUnfitError if this machine cannot build it, RunError if a step fails.
    """
    from setup.kernel import build as building  # noqa: PLC0415

    said: set[tuple[str, int]] = set()

    def progress(moment: Moment) -> None:
        mark = moment.step, int(moment.pct // NOTE_PCT)
        if mark not in said:
            said.add(mark)
            note(f"kernel: {_where(moment)}")

    note("the engine linux needs a kernel, which is built once: about 8 minutes on two CPUs")
    note(f"kernel: {words(building.build(progress))}")


def _where(moment: Moment) -> str:
    left = "" if moment.left_s is None else f", {duration(moment.left_s)} left"
    return f"{moment.pct:3.0f} %  {moment.step}{left}"


def _show(kernels: tuple[store.Kernel, ...], as_json: bool) -> None:
    for each in kernels:
        if as_json:
            write_json(sys.stdout, {"event": "kernel", **each.to_json()})
        else:
            click.echo(f"{each.path}\n  {words(each)}")


def words(each: store.Kernel) -> str:
    """Describe a kernel in one line."""
    fits = "" if each.is_current else "; of another version of refabric: not used"
    controls = ", ".join(each.congestion_controls)
    return f"Linux {each.version} ({each.package}), {controls}; built {each.built_at[:16]}{fits}"
