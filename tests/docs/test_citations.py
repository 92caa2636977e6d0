"""Files and folders that docs, docstrings and comments cite exist, and so do the headings that docs link to.

Names of headers, data files and folders also occur in code, as paths of results and of other programs. They
are looked for in prose alone: in pages, docstrings and comments.
"""

from __future__ import annotations

import ast
import functools
import io
import os
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from docs.tools import site

ROOT = Path(__file__).resolve().parents[2]
C = {".hpp", ".cpp", ".c", ".h"}
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
    "raises.py", "doubles.py", "aimd.py", "slow_start.py", "delay.py", "portus.py",
    "windows.py", "common.py", "notes.md", "folder.py", "helper.py", "moved.py", "nope.py",
}  # fmt: skip
"""Files of POX and of csg-htsim, those that tests write, and those that pages tell users to write."""
WRITTEN = {
    "run.json", "flows.csv", "ports.csv", "summary.csv", "origin.json", "build.json", "CONFIG.json",
    "net.json", "libbpf.h", "mptcp.h", "if_link.h", "vmlinux.h", "refabric/_packages/",
}  # fmt: skip
"""Files that runs, builds and users write, headers of Linux and of libbpf, and the folder of a wheel."""
_CITED = re.compile(
    r"(?<![\w/.<>*{}$-])((?:[\w.-]+/)*[\w-][\w.-]*\.(?:py|md|hpp|cpp|sh|bpf\.c))\b(?![\w/*{<(=])"
)
_CITED_IN_PROSE = re.compile(
    r"(?<![\w/.<>*{}$-])((?:[\w.-]+/)*[\w-][\w.-]*\.(?:h|json|csv|cfg)\b|(?:[\w.-]+/)*[a-z][\w-]*/)"
    r"(?![\w/*{<(=-]|\.\w)"
)
_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMENT = re.compile(r"^\s*#.*", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


@functools.cache
def tracked() -> list[str]:
    done = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


@functools.cache
def made() -> set[str]:
    """Return the pages of the site that are made from the code."""
    return {f"docs/{name}" for name in site.pages()} - set(tracked())


def ends(paths: Iterable[str]) -> set[str]:
    """Return what each path may be cited as: itself, and without some of its first folders."""
    parts = [path.split("/") for path in paths]
    return {"/".join(names[first:]) for names in parts for first in range(len(names))}


@functools.cache
def citable() -> set[str]:
    return ends({*tracked(), *made()})


@functools.cache
def citable_folders() -> set[str]:
    return ends({str(folder) for name in tracked() for folder in Path(name).parents})


def cited(text: str) -> set[str]:
    """Return the paths of source files and pages that `text` names."""
    return _ours(_CITED.findall(text)) - ELSEWHERE


def cited_in_prose(text: str) -> set[str]:
    """Return the paths of headers, data files and folders that `text` names; those of folders end in `/`."""
    return _ours(_CITED_IN_PROSE.findall(text)) - WRITTEN


def _ours(found: list[str]) -> set[str]:
    paths = (path.removeprefix("./").removeprefix("root/") for path in found)
    return {path for path in paths if path and not path.startswith(FOREIGN)}


def prose(suffix: str, text: str) -> str:
    """Return the comments and docstrings of a file of code, or all of a page, by the suffix of its name."""
    if suffix == ".md":
        return text
    if suffix == ".py":
        return "\n".join((*_docstrings(text), *_comments(text)))
    return "\n".join((_C_COMMENT if suffix in C else _COMMENT).findall(text))


def _docstrings(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def _comments(text: str) -> Iterator[str]:
    if "#" not in text:
        return iter(())
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return (token.string for token in tokens if token.type == tokenize.COMMENT)


def exists(path: str, beside: Path) -> bool:
    """Whether a file of the tree ends with `path`, or `path` leads to one from the folder `beside`.

    A path that ends in `/` is a folder's.
    """
    if path.endswith("/"):
        folder = path.rstrip("/")
        return folder in citable_folders() or (beside / folder).is_dir()
    return path in citable() or _is_made(beside / path) or (beside / path).exists()


def _is_made(path: Path) -> bool:
    return os.path.relpath(os.path.normpath(path), ROOT) in made()


def missing() -> list[str]:
    """Return `FILE: PATH` for each cited file that does not exist."""
    found = []
    for name in tracked():
        path = ROOT / name
        if path.suffix in TEXT and path.exists():
            text = path.read_text()
            names = cited(text) | cited_in_prose(prose(path.suffix, text))
            found += [f"{name}: {each}" for each in sorted(names) if not exists(each, path.parent)]
    return found


def headings(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(page.read_text()))
    return {heading.strip().replace(" ", "-") for heading in kept}


def broken_links(name: str) -> list[str]:
    """Return the links of a page that lead to no file, or to no heading of it."""
    page, found = ROOT / name, []
    for link in _LINK.findall(page.read_text()):
        path, _, heading = link.partition("#")
        if link.startswith(("http:", "https:")):
            continue
        target = page.parent / path if path else page
        if _is_made(target):
            continue  # tests/docs/test_site.py builds it and follows its links
        if not target.exists() or (heading and heading not in headings(target)):
            found.append(f"{name}: {link}")
    return found


def test_a_path_is_recognised_in_prose() -> None:
    text = "as model/spec.py and `topos/ports.py` say (theory.py), see net/ipv4/tcp.c and x/<point>.py"
    assert cited(text) == {"model/spec.py", "topos/ports.py", "theory.py"}
    assert not exists("nowhere/" + "README.md", ROOT)


def test_headers_data_and_folders_are_recognised_in_prose_alone() -> None:
    text = """# See fabric/ccp/datapath.h and nowhere/at/all/.
def write(path: str) -> str:
    \'\'\'Return baselines/verdicts.json, or gone/old.csv; 1/2 of it goes to results/x/.\'\'\'
    return path + "code/only.json"
"""
    found = cited_in_prose(prose(".py", text))
    assert found == {"fabric/ccp/datapath.h", "nowhere/at/all/", "baselines/verdicts.json", "gone/old.csv"}
    assert [path for path in sorted(found) if not exists(path, ROOT)] == ["gone/old.csv", "nowhere/at/all/"]
    assert cited_in_prose(prose(".h", "/* old/a.h\n b/ */ int c; // d.cfg\n x/e.h")) == {
        "old/a.h",
        "b/",
        "d.cfg",
    }


def test_cited_files_exist() -> None:
    assert missing() == []


def test_links_of_pages_lead_somewhere() -> None:
    pages = [name for name in tracked() if name.endswith(".md") and (ROOT / name).exists()]
    assert "README.md" in pages
    assert [broken for name in pages for broken in broken_links(name)] == []
