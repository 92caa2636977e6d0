"""Files and headings that pages, docstrings and comments cite exist, and commands of pages can be parsed.

Commands of refabric are parsed by refabric itself; nothing is started. Others are known by their first words.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from common.errors import RefabricError
from docs.tools import site, walk
from experiments.command import main
from experiments.registry import CATALOGUE

ROOT = Path(__file__).resolve().parents[2]
TEXT = {".py", ".md", ".hpp", ".cpp", ".c", ".h", ".sh", ".toml", ".yml"}
FOREIGN = (
    "net/", "include/", "kernel/", "Documentation/", "tools/testing/", "drivers/", "lib/", "fs/",
    "proc/", "sys/", "etc/", "usr/", "var/", "dev/", "run/", "tmp/", "results/", "other/", "raw/", "charts/",
)  # fmt: skip
"""Folders of the kernel's sources, of the machine, and of results."""
ELSEWHERE = {
    "fabric/simulation/congestion/gentle.hpp", "simulation/congestion/gentle.hpp",
    "fabric/core/disciplines/early_drop.cpp", "boot.py", "pox.py",
    "plots/charts/retransmitted.py", "fabric/simulation/fixed.cpp", "hops.py",
    "tcp.cpp", "asker.cpp", "json.py", "module.py", "sitecustomize.py", "mine.py", "fails.py", "fixed.py",
    "raises.py", "doubles.py", "aimd.py", "slow_start.py", "delay.py", "portus.py", "windows.py",
    "common.py", "notes.md", "folder.py", "helper.py", "moved.py", "nope.py",
    "new.py",
}  # fmt: skip
"""Files of POX and of csg-htsim, those that tests write, and those that pages tell users to write."""
_CITED = re.compile(
    r"(?<![\w/.<>*{}$-])((?:[\w.-]+/)*[\w-][\w.-]*\.(?:py|md|hpp|cpp|sh|bpf\.c))\b(?![\w/*{<(=])"
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


@functools.cache
def tracked() -> list[str]:
    argv = ["git", "ls-files"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return [name for name in done.stdout.splitlines() if (ROOT / name).exists()]


@functools.cache
def site_pages() -> dict[str, str]:
    """Return the pages of the site, without the list of files that a run enters: tracing it takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "files_entered", list)
        return site.pages()


@functools.cache
def made() -> set[str]:
    """Return the pages of the site that are made from the code."""
    return {f"docs/{name}" for name in site_pages()} - set(tracked())


@functools.cache
def citable() -> set[str]:
    """Return what each file may be cited as: its path, and the path without some of its first folders."""
    parts = [path.split("/") for path in (*tracked(), *made())]
    return {"/".join(names[first:]) for names in parts for first in range(len(names))}


def cited(text: str) -> set[str]:
    """Return the paths of source files and pages that `text` names."""
    paths = (path.removeprefix("./").removeprefix("root/") for path in _CITED.findall(text))
    return {path for path in paths if not path.startswith(FOREIGN)} - ELSEWHERE


def exists(path: str, beside: Path) -> bool:
    """Whether a file of the tree ends with `path`, or `path` leads to one from the folder `beside`."""
    return path in citable() or _is_made(beside / path) or (beside / path).exists()


def _is_made(path: Path) -> bool:
    return os.path.relpath(os.path.normpath(path), ROOT) in made()


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(page.read_text()))
    return {heading.strip().replace(" ", "-") for heading in kept}


def broken_links(name: str) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of it."""
    page, found = ROOT / name, []
    for link in _LINK.findall(page.read_text()):
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        if link.startswith(("http:", "https:")) or _is_made(target):
            continue  # tests/docs/test_site.py follows the links to pages that are made
        if not target.exists() or (heading and heading not in headings(target)):
            found.append(f"{name}: {link}")
    return found


def test_a_path_is_recognised_in_prose() -> None:
    text = "as model/spec.py and `topos/topology.py` say (theory.py), see net/ipv4/tcp.c and x/<point>.py"
    assert cited(text) == {"model/spec.py", "topos/topology.py", "theory.py"}
    assert not exists("nowhere/" + "README.md", ROOT)


def test_cited_files_exist() -> None:
    paths = [ROOT / name for name in tracked() if Path(name).suffix in TEXT]
    missing = [
        f"{path.relative_to(ROOT)}: {each}"
        for path in paths
        for each in sorted(cited(path.read_text()))
        if not exists(each, path.parent)
    ]
    assert missing == []


def test_links_of_pages_lead_somewhere() -> None:
    pages = [name for name in tracked() if name.endswith(".md")]
    assert "README.md" in pages
    assert [broken for name in pages for broken in broken_links(name)] == []


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
    shown = {name: text for name, text in site_pages().items() if not name.startswith(made)}
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
