"""A copy of the packages with changes that docs/adding.md shows, and `refabric` run from it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from docs.tools.imports import ORDER
from fabric import _core

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding.md"
CORE = Path(_core.__file__).name
LIBRARIES = (
    "nanobind/nanobind.h", "nanobind/ndarray.h", "nanobind/stl/pair.h", "nanobind/stl/string.h",
    "nanobind/stl/tuple.h", "nanobind/stl/vector.h", "algorithm", "array", "cmath", "deque", "functional",
    "memory", "optional", "span", "string", "variant", "vector",
)  # fmt: skip
SITECUSTOMIZE = f"""
import sys
sys.meta_path = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path = [folder for folder in sys.path if folder != {str(ROOT)!r}]
"""
"""Processes of the copy do not find the packages of the installed tree: its finder and the path in its .pth
file are removed."""


def changes(section: str) -> list[tuple[str, str]]:
    """Return the file and the diff of each numbered step of a section of the page."""
    page = PAGE.read_text()
    text = page[page.index(f"\n## {section}\n") + 1 :]
    text = text[: text.index("\n## ")]
    steps = re.findall(r"^\d\. .*?, in `([^`]+)`.*?```diff\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert steps, f"section {section} has no steps"
    assert len(steps) == text.count("```diff"), "every diff belongs to a step that names its file"
    return steps


def applied(text: str, diff: str) -> str:
    """Return `text` with the diff applied at the only place where it fits."""
    lines = diff.splitlines()
    before = "\n".join(line[1:] for line in lines if line[0] in " -")
    after = "\n".join(line[1:] for line in lines if line[0] in " +")
    if not text:
        assert not before, "the file does not exist yet"
        return after + "\n"
    assert text.count(before) == 1, f"one place looks like this:\n{before}"
    return text.replace(before, after)


def changed_tree(copy: Path, section: str) -> Path:
    """Copy the packages and the built core to the folder `copy` and apply the changes of the section."""
    for package in ORDER:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "sitecustomize.py").write_text(SITECUSTOMIZE)
    shutil.copy(_core.__file__, copy / "fabric" / CORE)
    for name, diff in changes(section):
        file = copy / name
        file.write_text(applied(file.read_text() if file.exists() else "", diff))
    return copy


def rebuild_core(tree: Path, header: str) -> None:
    """Compile the core's sources in `tree` that include `header`, directly or not, and link them with all
    other objects of the installed core. The commands are those that built it, without optimisation."""
    build = max((ROOT / "build").glob("cp*"), key=lambda folder: folder.stat().st_mtime)
    wanted = _sources_including(tree / "fabric", header)
    assert wanted, f"no source includes {header}"
    *compiling, linking = _build_commands(build)
    objects: dict[str, str] = {}
    to_run: list[list[str]] = []
    for argv in compiling:
        source = argv[argv.index("-c") + 1].replace(str(ROOT), str(tree)) if "-c" in argv else ""
        if Path(source) in wanted:
            name = argv[argv.index("-o") + 1]
            objects[name] = str(tree / f"{len(objects)}.o")
            here = (word.replace(f"{ROOT}/fabric", f"{tree}/fabric") for word in _to(argv, objects[name]))
            to_run.append(["-O0" if word == "-O3" else word for word in here])
    assert len(objects) == len(wanted)
    parsed = _parsed_once(tree, build, to_run[0])
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        list(workers.map(partial(_build, build), [[*argv, "-include", parsed] for argv in to_run]))
    argv = [objects.get(word, word) for word in linking[linking.index("&&") + 1 :]]
    _build(build, _to(argv[: argv.index("&&")], str(tree / "fabric" / CORE)))


def _parsed_once(tree: Path, build: Path, compiling: list[str]) -> str:
    """Return a header of the libraries that most sources include, precompiled."""
    header = tree / "libraries"
    header.write_text("".join(f"#include <{name}>\n" for name in LIBRARIES))
    argv = [word for word in compiling if not word.startswith("-DFABRIC_SOURCES")]
    source = argv.index("-c")
    argv[source : source + 2] = ["-x", "c++-header", str(header)]
    _build(build, _to(argv, f"{header}.gch"))
    return str(header)


def _sources_including(core: Path, header: str) -> set[Path]:
    included = {
        str(path.relative_to(core)): set(re.findall(r'#include "([^"]+)"', path.read_text()))
        for path in core.rglob("*.[ch]pp")
    }
    found, last = {header}, 0
    while len(found) > last:
        last = len(found)
        found |= {name for name, others in included.items() if others & found}
    return {core / name for name in found if name.endswith(".cpp")}


def _build_commands(build: Path) -> list[list[str]]:
    argv = [str(Path(sys.executable).with_name("ninja")), "-C", str(build), "-t", "commands", CORE]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return [shlex.split(line) for line in done.stdout.splitlines()]


def _to(argv: list[str], output: str) -> list[str]:
    """Return the command with another output file, and without the files of dependencies that it writes."""
    kept, words = [], iter(argv)
    for word in words:
        if word in ("-MT", "-MF", "-o"):
            next(words)
        elif word != "-MD":
            kept.append(word)
    return [*kept, "-o", output]


def _build(build: Path, argv: list[str]) -> None:
    done = subprocess.run(argv, cwd=build, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def refabric(tree: Path, *arguments: str) -> str:
    """Run the command from the copy; return its stdout."""
    # On one CPU points run in the command's own process. Worker processes ignore PYTHONPATH.
    cpu = str(min(os.sched_getaffinity(0)))
    argv = ["taskset", "-c", cpu, sys.executable, "-m", "experiments.command", *arguments]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=120, check=False, cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
