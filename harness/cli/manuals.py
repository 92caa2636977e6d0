"""`refabric man`, `docs` and `completion`: man pages, the documentation's site, completion in a shell.

The shell calls the command itself (click), so it offers exactly what the command accepts.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from common import files, processes
from common.errors import HostUnfitError, RunError, UsageError
from common.files import storing
from common.version import VERSION
from harness.cli.options import UsersPath, interruptible, users_path

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

ROOT = Path(__file__).resolve().parents[2]
BUILDER = ROOT / "docs" / "tools" / "site.py"
SITE_MARK = ".refabric-site"
"""A file that every site has. Only a folder with it, or an empty one, is filled."""
INSTALL_S, BUILD_S = 900.0, 600.0
ADDRESS = "127.0.0.1"
SHELLS = ("bash", "zsh", "fish")
HOW = """\
bash:
  mkdir -p ~/.local/share/bash-completion/completions
  refabric completion bash >~/.local/share/bash-completion/completions/refabric
zsh, in a folder of your fpath:
  mkdir -p ~/.zfunc
  refabric completion zsh >~/.zfunc/_refabric
fish:
  mkdir -p ~/.config/fish/completions
  refabric completion fish >~/.config/fish/completions/refabric.fish"""
SECTION = "1"
EXIT_CODES = (
    ("0", "Everything is ok."),
    ("1", "Some points failed or are suspect, or stored results are damaged or disagree; results are kept."),
    ("2", "The command line is wrong; nothing was started."),
    ("3", "This machine is not fit, or the disk is full."),
    ("130", "Interrupted."),
)


@click.command("man", short_help="Write the manual pages of all commands.")
@click.argument("folder", type=users_path, default=Path("man1"))
@click.pass_context
def manual(context: click.Context, folder: Path) -> None:
    """Write the manual pages of all commands to FOLDER (default man1); man -l man1/refabric.1 shows one."""
    root = context.find_root()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages(root.command, root.info_name or "refabric"):
            files.replace_file(folder / name, text.encode())
            click.echo(str(folder / name))
    except OSError as error:
        raise UsageError(f"writing to {folder}: {error.strerror}; name another folder") from error


def pages(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of the page of a command, and of every command in it."""
    context = click.Context(command, info_name=name, parent=parent)
    path = context.command_path
    yield f"{path.replace(' ', '-')}.{SECTION}", page(command, context)
    if isinstance(command, click.Group):
        for inner, found in _inner(command, context):
            if not found.hidden:
                yield from pages(found, inner, context)


def _inner(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield the name of every command of a group, and the command."""
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if found is not None:
            yield name, found


def page(command: click.Command, context: click.Context) -> str:
    """Return one page in the language of man(7)."""
    path = context.command_path
    title = path.replace(" ", "-")
    about = " ".join((command.help or "").split())
    lines = [f'.TH {_quoted(title.upper())} {SECTION} "" {_quoted(f"refabric {VERSION}")} "refabric"']
    lines += [".SH NAME", f"{_troff(title)} \\- {_troff(about.split('. ')[0].rstrip('.'))}"]
    lines += [".SH SYNOPSIS", f".B {_troff(path)}", _troff(" ".join(command.collect_usage_pieces(context)))]
    lines += [".SH DESCRIPTION", _troff(about)]
    records = [r for p in command.get_params(context) if (r := p.get_help_record(context)) is not None]
    lines += [".SH OPTIONS", *_tagged(records)] if records else []
    if isinstance(command, click.Group):
        commands = [(name, inner.get_short_help_str(200)) for name, inner in _inner(command, context)]
        lines += [".SH COMMANDS", *_tagged(commands)]
    lines += [".SH EXIT STATUS", *_tagged(EXIT_CODES)]
    return "\n".join(lines) + "\n"


def _tagged(
    records: Iterator[tuple[str, str]] | list[tuple[str, str]] | tuple[tuple[str, str], ...],
) -> list[str]:
    return [line for head, text in records for line in (".TP", f".B {_troff(head)}", _troff(text) or "\\&")]


def _troff(text: str) -> str:
    """Return text on one line, with the special characters of troff escaped."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "") + '"'


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
    _build_step(
        "installing MkDocs", [ROOT / "setup" / "install.sh", "--quiet", "--docs"], INSTALL_S, HostUnfitError
    )
    with tempfile.TemporaryDirectory(prefix="refabric-docs-") as folder:
        site = Path(folder, "site")
        _build_step("building the site", [sys.executable, BUILDER, site], BUILD_S, RunError)
        put_site(site, output)
        search = "" if serve else " (its search needs a server: refabric docs --serve)"
        click.echo(f"Open {output / 'index.html'}{search}")
        if serve:
            _serve(site, port)


def _check_is_ours(output: Path) -> None:
    """Raise UsageError for a folder that has something else than a site in it."""
    try:
        ours = not output.exists() or (output / SITE_MARK).exists() or not any(output.iterdir())
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}; name another folder") from error
    if not ours:
        raise UsageError(f"--output {output}: it holds other files; name an empty or a new folder")


def put_site(site: Path, output: Path) -> None:
    """Copy a new site to `output` in place of an older one. Hidden files there stay (`.git`).

    Raises UsageError if it holds other files, StoreError.
    """
    _check_is_ours(output)
    with storing(f"writing the site to {output}"):
        output.mkdir(parents=True, exist_ok=True)
        (output / SITE_MARK).touch()
        for old in [path for path in output.iterdir() if not path.name.startswith(".")]:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        shutil.copytree(site, output, dirs_exist_ok=True)


def _build_step(
    what: str, argv: list[str | Path], deadline_s: float, wrong: type[RunError | HostUnfitError]
) -> None:
    """Run a step; its own output says what is wrong."""
    try:
        code = subprocess.run(argv, timeout=deadline_s, check=False, env=processes.environment()).returncode
    except subprocess.TimeoutExpired as error:
        raise wrong(
            f"{what}: not done within {deadline_s:g} s; run it again: {' '.join(map(str, argv))}"
        ) from error
    if code != 0:
        raise wrong(f"{what} failed; the lines above say why")


def site_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of what is in the folder, on the loopback interface alone.

    It answers requests for this machine only: another name may be a page's, which a browser shows as that
    page's own (DNS rebinding). Raises UsageError for a port in use.
    """
    # Imported here, because http.server is slow to import, and `refabric --help` imports every command.
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
    with site_server(folder, port) as serving, interruptible():
        click.echo(f"http://{ADDRESS}:{serving.server_address[1]}/  (Ctrl-C ends it)")
        serving.serve_forever()


COMMAND, VARIABLE = "refabric", "_REFABRIC_COMPLETE"


@click.command(epilog=f"\b\n{HOW}", short_help="Print the script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes refabric's commands, experiments and options in a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise AssertionError(f"click has no completion for {shell}")
    root = context.find_root().command
    click.echo(found(root, {}, COMMAND, VARIABLE).source())
