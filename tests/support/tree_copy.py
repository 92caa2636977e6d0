"""A copy of the packages with changes that docs/adding.md shows, and `refabric` run from it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docs.tools.imports import ORDER
from fabric import _core

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding.md"
CORE = Path(_core.__file__).name
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


def changed_tree(copy: Path, *sections: str) -> Path:
    """Copy the packages and the built core to the folder `copy` and apply the changes of the sections."""
    for package in ORDER:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "sitecustomize.py").write_text(SITECUSTOMIZE)
    shutil.copy(_core.__file__, copy / "fabric" / CORE)
    for name, diff in (change for section in sections for change in changes(section)):
        file = copy / name
        file.write_text(applied(file.read_text() if file.exists() else "", diff))
    return copy


def rebuild_core(tree: Path) -> None:
    """Build the core of `tree` without optimisation, in place of the installed one."""
    build = tree / "build"
    ninja = Path(sys.executable).with_name("ninja")
    nanobind = _run(sys.executable, "-m", "nanobind", "--cmake_dir").strip()
    _run(
        "cmake", "-S", tree / "fabric", "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}",
        "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={nanobind}",
    )  # fmt: skip
    _run(ninja, "-C", build)
    shutil.copy(build / CORE, tree / "fabric" / CORE)


def _run(*argv: str | Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
