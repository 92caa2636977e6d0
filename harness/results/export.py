"""One zip with what a course or a paper needs of an experiment: report, tables, charts, provenance."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path

from common.errors import StoreError, UsageError
from common.named_files import write_new
from common.printable import one_line
from harness.results import contents, tree

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


def write(folder: Path, target: Path, samples: bool, version: str) -> tuple[int, int]:
    """Write the archive of an experiment's folder; return its number of files and its size.

    Raises UsageError if there are no points or if `target` exists, StoreError.
    """
    found = contents.contents(folder)
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
                    tree.open_below(folder, name) as file,
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
