"""The help of every command: of refabric, of the benchmarks and of the scripts in docs/tools."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from experiments.command import main
from experiments.registry import CATALOGUE

ROOT = Path(__file__).resolve().parents[3]
COLUMNS = 80
SCRIPTS = ("benchmarks", "docs/tools")


def inside(command: click.Command, context: click.Context) -> Iterator[tuple[click.Context, click.Command]]:
    """Yield a command and every command in it, with their contexts."""
    yield context, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from inside(found, click.Context(found, info_name=name, parent=context))


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield the path and the command of everything that a user can start."""
    for context, command in inside(main, click.Context(main, info_name="refabric")):
        yield context.command_path, command
    for script in scripts():
        module = importlib.import_module(".".join(script.with_suffix("").parts))
        for command in vars(module).values():
            made_by = command.callback if isinstance(command, click.Command) else None
            if made_by is not None and made_by.__module__ == module.__name__:
                yield str(script), command


def scripts() -> list[Path]:
    return [path.relative_to(ROOT) for folder in SCRIPTS for path in sorted((ROOT / folder).glob("*.py"))]


COMMANDS = list(commands())


def undocumented(command: click.Command) -> list[str]:
    """Return the command's options without help, and "command" if it has none itself."""
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    return [*(each.name or "" for each in options if not each.help), *([] if command.help else ["command"])]


def test_all_commands_are_found() -> None:
    paths = [path for path, _ in COMMANDS]
    assert {"refabric run", "refabric kernel build", "benchmarks/simulator.py", "docs/tools/site.py"} <= {
        *paths
    }
    assert len(paths) > 35


def test_a_command_without_help_is_found() -> None:
    bare = click.Command("bare", params=[click.Option(["--rate"]), click.Option(["--k"], help="Size.")])
    assert undocumented(bare) == ["rate", "command"]


@pytest.mark.parametrize(("path", "command"), COMMANDS, ids=[path for path, _ in COMMANDS])
def test_commands_and_options_have_help(path: str, command: click.Command) -> None:
    assert undocumented(command) == [], path


def test_scripts_take_their_options_through_click() -> None:
    own = [
        str(path) for path in scripts() if "argparse" in (text := (ROOT / path).read_text()) or "argv" in text
    ]
    assert own == []


@pytest.mark.parametrize(
    ("path", "group"), [(path, each) for path, each in COMMANDS if isinstance(each, click.Group)]
)
def test_a_list_of_commands_gives_each_one_whole_line(path: str, group: click.Group) -> None:
    words = path.split()[1:]
    shown = CliRunner().invoke(main, [*words, "--help"], obj=CATALOGUE, terminal_width=COLUMNS)
    _, _, rest = shown.output.partition("Commands:\n")
    lines = rest.split("\n\n")[0].splitlines()
    names = group.list_commands(click.Context(group))
    assert [line.split()[0] for line in lines] == list(names)
    assert [line for line in lines if "..." in line or len(line) > COLUMNS or len(line.split()) < 4] == []
