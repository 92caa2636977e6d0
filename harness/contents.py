"""What a results folder holds: the files that refabric wrote, and others, which it never removes or exports.

No link on the way to a file is followed, because anybody may have written the folder.
"""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from common import files
from common.errors import StoreError, UsageError
from common.files import remove_tree, write_new
from common.text import one_line
from harness.results.run_json import RAW, RUN, read_run
from plots.registry import CHARTS

_POINT = re.compile(r"[A-Za-z0-9_.+-]+-[0-9a-f]{12}")
_CHART = re.compile(rf"({'|'.join(map(re.escape, CHARTS))})(-[^/]*)?\.(svg|pdf|png)")
_AT_TOP = re.compile(r"summary\.csv|(report|watch)(-[a-z0-9-]+)?\.html|\.report(-[a-z0-9-]+)?\.json|\.lock")
_MANIFEST = re.compile(r"figures/[A-Za-z0-9_.-]+\.json")
_IN_POINT = re.compile(r"run\.json|origin\.json|(flows|ports)\.csv|samples/[a-z_]+\.csv\.gz|raw/.+")
_FOLDERS = re.compile(r"charts(/[A-Za-z0-9_.-]+)?|figures")
_IN_POINT_FOLDERS = re.compile(r"samples|raw(/.+)?")


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
    """Return whether refabric wrote the folder of this point, in the format of this version."""
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
        for name, about in files.walk(folder):
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


MAX_FILE_BYTES, MAX_BYTES = 1 << 30, 1 << 32
"""Of one file, and of all together."""
_AT_ONCE = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
READ_ME = """\
Results of the experiment {name}, exported by refabric {version}.

report.html      the page with everything; any browser shows it, without a network
summary.csv      one row per point
charts/          the charts as SVG, PDF and PNG
<point>/         run.json: the settings, the status and the provenance of one point
                 flows.csv, ports.csv: one row per flow, and per direction of a link
                 samples/: tables over time{samples}

Put the folder below results/ of a clone of refabric: `refabric report {name}` draws it again, and
`refabric compare` compares it with other results.
"""


def export(folder: Path, target: Path, samples: bool, version: str) -> tuple[int, int]:
    """Write the archive of an experiment's folder; return its number of files and its size.

    Raises UsageError if there are no points or if `target` exists, StoreError.
    """
    found = contents(folder)
    if not found.points:
        raise UsageError(f"exporting {folder}: it has no points; give the folder of an experiment")
    chosen = [name for name in found.ours if _is_wanted(name, samples)]
    note = READ_ME.format(
        name=one_line(folder.name), version=version, samples="" if samples else " (not exported)"
    )
    data = _archive(folder, chosen, note)
    write_new(f"--output {target}", target, data)
    return len(chosen) + 1, len(data)


def _is_wanted(name: str, samples: bool) -> bool:
    parts = name.split("/")
    return "raw" not in parts and not name.startswith(".") and (samples or "samples" not in parts)


def _archive(folder: Path, names: Iterable[str], note: str) -> bytes:
    """Return the archive. Equal results give equal bytes: all files have one date. Raises StoreError."""
    buffer, place, left = io.BytesIO(), one_line(folder.name), MAX_BYTES
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(f"{place}/README.txt"), note)
        for name in names:
            try:
                with (
                    files.open_below(folder, name) as file,
                    archive.open(_entry(f"{place}/{name}"), "w") as to,
                ):
                    room = min(left, MAX_FILE_BYTES)
                    while data := file.read(_AT_ONCE):
                        room -= len(data)
                        left -= len(data)
                        if room < 0:
                            raise StoreError(f"exporting {folder}: it is too large, with {name}")
                        to.write(data)
            except OSError as error:
                raise StoreError(f"reading {folder / name}: {error.strerror}") from error
    return buffer.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry
