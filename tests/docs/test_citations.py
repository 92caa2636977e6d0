"""Files that pages, docstrings and comments cite exist, and so do the headings that pages link to."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

from docs.tools import site

ROOT = Path(__file__).resolve().parents[2]
TEXT = {".py", ".md", ".hpp", ".cpp", ".c", ".h", ".sh", ".toml", ".yml"}
FOREIGN = (
    "net/", "include/", "kernel/", "Documentation/", "tools/testing/", "drivers/", "lib/", "fs/",
    "proc/", "sys/", "etc/", "usr/", "var/", "dev/", "run/", "tmp/", "results/", "other/", "raw/", "charts/",
)  # fmt: skip
"""Folders of the kernel's sources, of the machine, and of results."""
ELSEWHERE = {
    "fabric/simulation/congestion/gentle.hpp", "simulation/congestion/gentle.hpp",
    "fabric/core/disciplines/early_drop.hpp", "core/disciplines/early_drop.hpp", "boot.py", "pox.py",
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
def made() -> set[str]:
    """Return the pages of the site that are made from the code."""
    return {f"docs/{name}" for name in site.pages()} - set(tracked())


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
