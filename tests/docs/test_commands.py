"""Every command in a block of README and docs exists: its options, experiments and values are parsed.

Commands of refabric are parsed by refabric itself; nothing is started. Others are known by their first words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from common.errors import RefabricError
from docs.tools import site
from experiments.command import main
from experiments.registry import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(?:sh|bash|console|text)?\n(.*?)^```$|((?:^    .*\n)+)", re.MULTILINE | re.DOTALL)
_REFABRIC = re.compile(r"^(?:\.venv/bin/)?refabric$")
_PREFIXES = {"sudo", "time"}
_OTHER_PROGRAMS = {"./run_tests.sh", "setup/install.sh", ".ci/run", "tests/sanitize.sh", "tests/bare/run.sh"}
MINE = {"mine.py", "windows.py", "net.json", "flows.csv", "sweep.toml", "mine.txt", "outdoors.trace"}
"""Files that readers write themselves, so that no test has them."""


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command line of refabric in blocks; continued lines are one."""
    for fenced, indented in _BLOCK.findall(text):
        block = re.sub(r"\\\n\s*", " ", fenced or indented)
        for line in block.splitlines():
            words = _words(line.strip().removeprefix("$ "))
            if not fenced and words[:1] == ["refabric"]:
                continue  # prose in a list is indented too
            if words and (
                _REFABRIC.match(words[0]) or words[0] == "./run_mptcp.sh" or words[0] in _OTHER_PROGRAMS
            ):
                yield words


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(re.split(r" \| | >| \[", line)[0], comments=True)
    except ValueError:
        return []  # prose, or the output of a program
    while words and (words[0] in _PREFIXES or re.fullmatch(r"[A-Z_]+=\S*", words[0])):
        words = words[1:]
    return words


def parsed(words: list[str]) -> None:
    """Parse a command of refabric as the command line would. Raises ClickException, RefabricError."""
    if words[0] == "./run_mptcp.sh":
        words = ["refabric", "run", "cs244-one-to-one", *_options(words[1:])]
    context = main.make_context("refabric", words[1:] or ["--help"], obj=CATALOGUE)
    command: click.Command = main
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(
            context, [*context._protected_args, *context.args] or ["--help"]
        )
        assert found is not None, name
        command = found
        context = command.make_context(name, list(rest), parent=context)


def _options(words: list[str]) -> list[str]:
    """Return the options after k, workload and `qmon`, which run_mptcp.sh checks itself."""
    first = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    return words[first:]


def pages() -> dict[str, str]:
    made = "reference/"  # from click itself
    shown = {name: text for name, text in site.pages().items() if not name.startswith(made)}
    return {"README.md": (ROOT / "README.md").read_text(), **shown}


def wrong(name: str, words: list[str]) -> str:
    of_reader = MINE & {re.split(r"[/:@]", word)[-1] for word in words}
    if words[0] in _OTHER_PROGRAMS or of_reader or any(word.isupper() for word in words):
        return ""
    try:
        parsed(words)
    except click.exceptions.Exit:
        return ""
    except (click.ClickException, RefabricError) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        return f"{name}: {' '.join(words)}: {text}"
    return ""


def test_a_wrong_command_is_found() -> None:
    lines = ("```", "sudo .venv/bin/refabric run cs244-fig99", "./run_mptcp.sh 4 --nonsense 3  # why", "```")
    text = "\n".join(lines)
    found = list(commands(text))
    assert [words[0] for words in found] == [".venv/bin/refabric", "./run_mptcp.sh"]
    assert all(wrong("page", words) for words in found)


def test_every_command_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for parent in ("results", "other"):
        for name in ("cs244", "cs244-one-to-one", "validation"):
            (tmp_path / parent / name).mkdir(parents=True)
    found = [(name, words) for name, text in pages().items() for words in commands(text)]
    assert len(found) > 100
    assert [each for name, words in found if (each := wrong(name, words))] == []
