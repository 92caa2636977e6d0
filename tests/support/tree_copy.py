"""Copies of the tree with changes that docs/adding.md shows, and `refabric` run from them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from docs.tools.architecture import packages
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
    """Copy the packages and the built core to the folder `copy` and apply the changes of the sections.

    Byte code is copied, too: it is valid for files that do not change. What another process is just writing
    (`*.pyc.*`) may vanish.
    """
    for package in packages():
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("*.pyc.*"))
    (copy / "sitecustomize.py").write_text(SITECUSTOMIZE)
    shutil.copy(_core.__file__, copy / "fabric" / CORE)
    _change(copy, sections)
    return copy


def changed_checkout(copy: Path, *sections: str) -> Path:
    """Copy all files that git does not ignore to the folder `copy` and apply the changes of the sections."""
    listed = _run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    _change(copy, sections)
    return copy


def _change(copy: Path, sections: Iterable[str]) -> None:
    """Apply the changes of the sections, and let charts be written as SVG only, as in all tests."""
    saving = copy / "plots/shared/saving.py"
    saving.write_text(applied(saving.read_text(), '-FORMATS = ("svg", "pdf", "png")\n+FORMATS = ("svg",)'))
    for name, diff in (change for section in sections for change in changes(section)):
        file = copy / name
        file.write_text(applied(file.read_text() if file.exists() else "", diff))


def _run(*argv: str | Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refabric(tree: Path, *arguments: str) -> str:
    """Run the command from the copy; return its stdout."""
    return on_one_cpu([sys.executable, "-m", "refabric.command", *arguments], tree, {"PYTHONPATH": str(tree)})


def on_one_cpu(argv: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> str:
    """Run a command of refabric in a folder; return its stdout.

    On one CPU points run in the command's own process: worker processes take time to start, and those of a
    copy would ignore PYTHONPATH.
    """
    cpu = str(min(os.sched_getaffinity(0)))
    done = subprocess.run(
        ["taskset", "-c", cpu, *argv], capture_output=True, text=True, timeout=120, check=False, cwd=folder,
        env={**os.environ, **(more or {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
