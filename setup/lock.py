"""Writes requirements.txt anew: for each pinned version, the hashes of the wheels that pip chooses.

    .venv/bin/python setup/lock.py [--site] [NAME==VERSION ...]

With --site the file is that of the documentation's own environment (docs/site/requirements.txt). Pins given
as arguments replace those of the file or are added to them. The file is for CPython 3.11 to 3.13 on x86-64
and arm64, with glibc 2.36 (Debian 12) or older. pip itself reports what it would install (`--dry-run
--report`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.txt"
SITE_LOCK = ROOT / "docs" / "site" / "requirements.txt"
PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
GLIBC_MINORS = range(5, 37)
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==([\w.+!]+)", re.MULTILINE)
_DEADLINE_S = 900.0


def pins(text: str) -> dict[str, str]:
    """Return the version of each pinned package."""
    return dict(_PIN.findall(text))


def rendered(header: str, wanted: Mapping[str, str], hashes: Mapping[str, set[str]]) -> str:
    """Return the text of a lock file; every package needs a hash."""
    lines = [header.rstrip()]
    for name in sorted(wanted, key=str.lower):
        each = [f"    --hash=sha256:{digest}" for digest in sorted(hashes[name])]
        lines.append(" \\\n".join([f"{name}=={wanted[name]}", *each]))
    return "\n".join(lines) + "\n"


def chosen(wanted: Mapping[str, str], python: str, machine: str) -> Iterator[tuple[str, str]]:
    """Yield (name, SHA-256) of each wheel that pip would install there. Raises CalledProcessError."""
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC_MINORS] + [f"manylinux2014_{machine}"]
    with tempfile.TemporaryDirectory() as folder:
        asked, report = Path(folder, "asked.txt"), Path(folder, "report.json")
        asked.write_text("".join(f"{name}=={version}\n" for name, version in wanted.items()))
        argv = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        argv += ["--no-deps", "--only-binary", ":all:", "--python-version", python, "--implementation", "cp"]
        argv += [word for platform in platforms for word in ("--platform", platform)]
        argv += [
            "--target",
            str(Path(folder, "target")),
            "--report",
            str(report),
            "--requirement",
            str(asked),
        ]
        subprocess.run(argv, check=True, timeout=_DEADLINE_S)
        for entry in json.loads(report.read_text())["install"]:
            digest = entry["download_info"]["archive_info"]["hash"].removeprefix("sha256=")
            yield _normal(entry["metadata"]["name"]), digest


def _normal(name: str) -> str:
    """Return the form in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main(argv: list[str]) -> int:
    lock = SITE_LOCK if "--site" in argv else LOCK
    argv = [word for word in argv if word != "--site"]
    text = lock.read_text()
    wanted = {**pins(text), **pins("\n".join(argv))}
    found: dict[str, set[str]] = {_normal(name): set() for name in wanted}
    for python in PYTHONS:
        for machine in MACHINES:
            for name, digest in chosen(wanted, python, machine):
                found[name].add(digest)
            print(f"CPython {python}, {machine}: {len(wanted)} wheels", file=sys.stderr)
    header = text[: _PIN.search(text).start()] if _PIN.search(text) else ""  # type: ignore[union-attr]
    lock.write_text(rendered(header, wanted, {name: found[_normal(name)] for name in wanted}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
