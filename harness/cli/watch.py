"""`refabric watch`: a page on this machine that shows points at work."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from harness.cli.options import interruptible, json_option, users_path
from harness.streams import write_json


@click.command(short_help="Show running and finished points on a live page.")
@click.argument("folder", type=users_path, default=Path("results"), metavar="[FOLDER]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Serve on this port. [default: any that is free]",
)
@json_option
def watch(folder: Path, port: int, as_json: bool) -> None:
    """Show running and finished points on a page: the network, its queues, every subflow.

    FOLDER holds results (default: results), one experiment's, or one point. The page is served on 127.0.0.1,
    to those who have the token in its address, until Ctrl-C.
    """
    from harness.watch.points import Points  # noqa: PLC0415
    from harness.watch.server import WatchServer, until_interrupted  # noqa: PLC0415

    with interruptible(), contextlib.suppress(KeyboardInterrupt):
        server = WatchServer(Points(folder.absolute()), f"Watching {folder.absolute().name}", port)
        if as_json:
            write_json(sys.stdout, {"event": "watch", "url": server.url})
        else:
            click.echo(f"Open {server.url}")
            click.echo(f"It shows what runs and what is stored in {folder}. Ctrl-C ends it.", err=True)
        sys.stdout.flush()
        until_interrupted(server)
