"""`refabric docs`: build the documentation's site from the clone, and serve it on this machine."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from common.errors import HostUnfitError, RunError, UsageError
from harness.cli.options import interruptible

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

ROOT = Path(__file__).resolve().parents[3]
BUILDER = ROOT / "docs" / "tools" / "site.py"
MARK = "search/search_index.json"
"""A file that every site has. Only a folder with it, or an empty one, is replaced."""
INSTALL_S, BUILD_S = 900.0, 600.0
ADDRESS = "127.0.0.1"


@click.command(short_help="Build the documentation as a site with a search.")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("site"), show_default=True,
    metavar="DIR", help="Write the site to this folder.",
)  # fmt: skip
@click.option("--serve", is_flag=True, help="Then serve it on this machine until Ctrl-C.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, metavar="PORT",
    help="Serve it on this port; 0 chooses a free one.",
)  # fmt: skip
def docs(output: Path, serve: bool, port: int) -> None:
    """Build the documentation as a site with a search; dead links and anchors are errors."""
    if not BUILDER.exists():
        raise UsageError(
            "an installed package has no documentation: run refabric docs in a clone of refabric"
        )
    if output.exists() and any(output.iterdir()) and not (output / MARK).exists():
        raise UsageError(f"--output {output}: it holds other files; name an empty or a new folder")
    _do("installing MkDocs", [ROOT / "setup" / "install.sh", "--quiet", "--docs"], INSTALL_S, HostUnfitError)
    _do("building the site", [sys.executable, BUILDER, output], BUILD_S, RunError)
    search = "" if serve else " (its search needs a server: refabric docs --serve)"
    click.echo(f"Open {output / 'index.html'}{search}")
    if serve:
        _serve(output, port)


def _do(what: str, argv: list[str | Path], deadline_s: float, wrong: type[RunError | HostUnfitError]) -> None:
    """Run a step; its own output says what is wrong."""
    try:
        code = subprocess.run(argv, timeout=deadline_s, check=False).returncode
    except subprocess.TimeoutExpired as error:
        raise wrong(
            f"{what}: not done within {deadline_s:g} s; run it again: {' '.join(map(str, argv))}"
        ) from error
    if code != 0:
        raise wrong(f"{what} failed; the lines above say why")


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of the folder on the loopback interface alone. Raises UsageError for a port in use."""
    # Imported here, because http.server is slow to import and this module is needed by every command.
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer  # noqa: PLC0415

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: one line per request would hide the address."""

    try:
        return ThreadingHTTPServer((ADDRESS, port), functools.partial(Quiet, directory=str(folder)))
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; choose another one, e.g. --port 0") from error


def _serve(folder: Path, port: int) -> None:
    with server(folder, port) as serving, interruptible():
        click.echo(f"http://{ADDRESS}:{serving.server_address[1]}/  (Ctrl-C ends it)")
        serving.serve_forever()
