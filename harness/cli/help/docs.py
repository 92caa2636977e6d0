"""`refabric docs`: build the documentation's site from the clone, and serve it on this machine."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from common import programs
from common.errors import HostUnfitError, RunError, UsageError
from common.files import storing
from harness.cli.options import UsersPath, interruptible

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

ROOT = Path(__file__).resolve().parents[3]
BUILDER = ROOT / "docs" / "tools" / "site.py"
MARK = ".refabric-site"
"""A file that every site has. Only a folder with it, or an empty one, is filled."""
INSTALL_S, BUILD_S = 900.0, 600.0
ADDRESS = "127.0.0.1"


@click.command(short_help="Build the documentation as a site with a search.")
@click.option(
    "--output", type=UsersPath(path_type=Path, file_okay=False), default=Path("site"), show_default=True,
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
    _check_is_ours(output)
    _do("installing MkDocs", [ROOT / "setup" / "install.sh", "--quiet", "--docs"], INSTALL_S, HostUnfitError)
    with tempfile.TemporaryDirectory(prefix="refabric-docs-") as folder:
        site = Path(folder, "site")
        _do("building the site", [sys.executable, BUILDER, site], BUILD_S, RunError)
        put(site, output)
        search = "" if serve else " (its search needs a server: refabric docs --serve)"
        click.echo(f"Open {output / 'index.html'}{search}")
        if serve:
            _serve(site, port)


def _check_is_ours(output: Path) -> None:
    """Raise UsageError for a folder that has something else than a site in it."""
    try:
        ours = not output.exists() or (output / MARK).exists() or not any(output.iterdir())
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}; name another folder") from error
    if not ours:
        raise UsageError(f"--output {output}: it holds other files; name an empty or a new folder")


def put(site: Path, output: Path) -> None:
    """Copy a new site to `output` in place of an older one. Hidden files there stay (`.git`).

    Raises UsageError if it holds other files, StoreError.
    """
    _check_is_ours(output)
    with storing(f"writing the site to {output}"):
        output.mkdir(parents=True, exist_ok=True)
        (output / MARK).touch()
        for old in [path for path in output.iterdir() if not path.name.startswith(".")]:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        shutil.copytree(site, output, dirs_exist_ok=True)


def _do(what: str, argv: list[str | Path], deadline_s: float, wrong: type[RunError | HostUnfitError]) -> None:
    """Run a step; its own output says what is wrong."""
    try:
        code = subprocess.run(argv, timeout=deadline_s, check=False, env=programs.environment()).returncode
    except subprocess.TimeoutExpired as error:
        raise wrong(
            f"{what}: not done within {deadline_s:g} s; run it again: {' '.join(map(str, argv))}"
        ) from error
    if code != 0:
        raise wrong(f"{what} failed; the lines above say why")


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of what is in the folder, on the loopback interface alone.

    It answers requests for this machine only: another name may be a page's, which a browser shows as that
    page's own (DNS rebinding). Raises UsageError for a port in use.
    """
    # Imported here, because http.server is slow to import and this module is needed by every command.
    from http import HTTPStatus  # noqa: PLC0415
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer  # noqa: PLC0415

    class Handler(SimpleHTTPRequestHandler):
        def send_head(self) -> Any:
            if self.headers.get("Host", "").partition(":")[0] not in {ADDRESS, "localhost"}:
                return self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            if not Path(self.translate_path(self.path)).resolve().is_relative_to(folder.resolve()):
                return self.send_error(HTTPStatus.NOT_FOUND)
            return super().send_head()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: one line per request would hide the address."""

    try:
        return ThreadingHTTPServer((ADDRESS, port), functools.partial(Handler, directory=str(folder)))
    except OSError as error:
        raise UsageError(f"--port {port}: {error.strerror}; choose another one, e.g. --port 0") from error


def _serve(folder: Path, port: int) -> None:
    with server(folder, port) as serving, interruptible():
        click.echo(f"http://{ADDRESS}:{serving.server_address[1]}/  (Ctrl-C ends it)")
        serving.serve_forever()
