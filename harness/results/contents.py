"""What a results folder holds: the files that refabric wrote, and others, which it never removes."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common import files
from common.errors import StoreError, UsageError
from common.writers import remove_tree
from harness.results import tree
from harness.results.stored_run import RUN, read_run
from plots.registry import CHARTS

_POINT = re.compile(r"[A-Za-z0-9_.+-]+-[0-9a-f]{12}")
_CHART = re.compile(rf"({'|'.join(map(re.escape, CHARTS))})(-[^/]*)?\.(svg|pdf|png)")
_AT_TOP = re.compile(
    r"summary\.csv|(report|watch)(-[a-z0-9-]+)?\.html|\.report(-[a-z0-9-]+)?\.json|\.notes\.json|\.lock"
)
_MANIFEST = re.compile(r"figures/[A-Za-z0-9_.-]+\.json")
_IN_POINT = re.compile(r"run\.json|origin\.json|(flows|ports)\.csv|samples/[a-z_]+\.csv\.gz|raw/.+")
_FOLDERS = re.compile(r"charts(/[A-Za-z0-9_.-]+)?|figures")
_IN_POINT_FOLDERS = re.compile(r"samples|raw(/.+)?")
RAW = "raw"


@dataclass(frozen=True)
class Contents:
    """One folder of an experiment: its points, their size with everything else of refabric's, the files in it
    that refabric wrote, and the paths that it did not."""

    path: Path
    points: int
    size_bytes: int
    ours: tuple[str, ...]
    foreign: tuple[str, ...]


def experiment_folders(results: Path) -> list[Path]:
    """Return the folders in `results` that hold points, by name. Raises UsageError."""
    try:
        entries = sorted(each for each in results.iterdir() if each.is_dir() and not each.is_symlink())
        return [each for each in entries if any(_is_point(point) for point in each.iterdir())]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(
            f"reading {results}: {error.strerror}; choose another folder with --results"
        ) from error


def _is_point(folder: Path) -> bool:
    """Return whether refabric wrote the folder of this point, in any version that it recognises."""
    if not _POINT.fullmatch(folder.name) or folder.is_symlink():
        return False
    try:
        read_run(folder / RUN)
    except StoreError:
        return False
    return True


def contents(folder: Path) -> Contents:
    """Return what the folder of an experiment holds. Raises StoreError."""
    with files.storing(f"reading {folder}"):
        points = {each.name for each in folder.iterdir() if _is_point(each)}
        size, ours, foreign = 0, [], []
        for name, about in tree.walk(folder):
            is_folder = stat.S_ISDIR(about.st_mode)
            if not is_ours(name, is_folder, points):
                foreign.append(name)
            elif not is_folder:
                size += about.st_size
                ours += [name] if stat.S_ISREG(about.st_mode) else []
    return Contents(folder, len(points), size, tuple(ours), tuple(foreign))


def is_ours(name: str, is_folder: bool, points: set[str]) -> bool:
    """Return whether refabric writes a file or a folder of this name in an experiment's folder."""
    first, _, rest = name.partition("/")
    if not name.isprintable():
        return False
    if first in points:
        pattern = _IN_POINT_FOLDERS if is_folder else _IN_POINT
        return not rest or bool(pattern.fullmatch(rest))
    if is_folder:
        return bool(_FOLDERS.fullmatch(name))
    in_charts = first == "charts" and bool(_CHART.fullmatch(name.rpartition("/")[2]))
    return in_charts or bool(_AT_TOP.fullmatch(name) or _MANIFEST.fullmatch(name))


def remove(folder: Path) -> tuple[str, ...]:
    """Remove what refabric wrote there, and the folder if it is then empty; return what was left.

    Raises StoreError.
    """
    points = {each.name for each in folder.iterdir() if _is_point(each)}
    with files.storing(f"removing {folder}"):
        left = tuple(_emptied(folder, "", points))
        if not left:
            folder.rmdir()
    return left


def _emptied(folder: Path, prefix: str, points: set[str]) -> Iterator[str]:
    """Remove our entries of a folder; yield the paths of the others."""
    # run.json last: until then the folder is known as a point, so an interrupted removal can go on
    for path in sorted(folder.iterdir(), key=lambda path: (path.name == RUN, path.name)):
        name = f"{prefix}{path.name}"
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
        if not is_ours(name, is_folder, points):
            yield name
        elif not is_folder:
            path.unlink()
        elif path.name == RAW:
            remove_tree(path)
        else:
            left = list(_emptied(path, f"{name}/", points))
            if not left:
                path.rmdir()
            yield from left
