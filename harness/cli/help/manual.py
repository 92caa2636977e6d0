"""`refabric man`: the manual pages of all commands, made from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from common import files
from common.errors import UsageError
from common.version import VERSION
from harness.cli.options import users_path

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
    lines += [".SH NAME", f"{_text(title)} \\- {_text(about.split('. ')[0].rstrip('.'))}"]
    lines += [".SH SYNOPSIS", f".B {_text(path)}", _text(" ".join(command.collect_usage_pieces(context)))]
    lines += [".SH DESCRIPTION", _text(about)]
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
    return [line for head, text in records for line in (".TP", f".B {_text(head)}", _text(text) or "\\&")]


def _text(text: str) -> str:
    """Return text on one line, with the special characters of troff escaped."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "") + '"'
