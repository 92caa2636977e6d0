"""Build the guest's kernel. About 8 minutes on two CPUs.

The source is unpacked beside the built kernels, in a hidden folder that is removed afterwards. An interrupted
build continues where it stopped. Only one build can run at a time. The bytes depend on the compiler alone:
date, user and host in the kernel's version are fixed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from common.errors import BusyError, CommandError, RunError
from common.files import storing
from common.processes import SYSTEM_PATH
from engines.linux.kernel import source, store
from engines.linux.kernel.store import CONFIG, PROGRAM, RECORD, Kernel
from setup.kernel import machine, package
from setup.kernel.progress import Progress, Steps
from setup.kernel.running import output, run
from setup.kernel.trial import trial

LOCK, LOG, PREPARED, UNFINISHED = ".lock", "build.log", ".prepared", ".build-"
MAKE = ("make", "ARCH=um")
SAME_BYTES = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01", "KBUILD_BUILD_USER": "refabric", "KBUILD_BUILD_HOST": "refabric",
    "KBUILD_BUILD_VERSION": "1",
}  # fmt: skip


@dataclass(frozen=True)
class _Place:
    """Where a build works: `work` is removed at its end, `tree` below it has the source."""

    work: Path
    target: Path
    log: Path

    @property
    def tree(self) -> Path:
        return self.work / "source"


def build(progress: Progress, any_version: bool = False, force: bool = False) -> Kernel:
    """Build the kernel of this clone unless there is one (`force`: again), and return it.

    `any_version` accepts another version of the package than the tested one. Raises HostUnfitError if this
    machine cannot build it, BusyError if another build is running, RunError if a step fails: the log stays.
    """
    folder = store.folder()
    present = store.current()
    if present and not force:
        return present
    machine.check(folder)
    chosen = package.found(any_version)
    target = store.folder_of(chosen.version)
    with storing(f"creating {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    place = _Place(folder / f"{UNFINISHED}{target.name}", target, folder / LOG)
    with alone(folder):
        _remove_unfinished(folder, but=place.work)
        return _built(chosen, place, Steps(progress))


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other builds away during the context. Raises BusyError if one is running."""
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise BusyError(
                f"another kernel build is running (pid {file.read().strip() or 'unknown'}): "
                "wait for it, or end it"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def remove() -> int:
    """Remove all built kernels and what is left of builds; return the bytes freed. Raises BusyError."""
    folder = store.folder()
    if not folder.is_dir():
        return 0
    with alone(folder), storing(f"removing {folder}"):
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
        shutil.rmtree(folder)
    return size


def _remove_unfinished(folder: Path, but: Path) -> None:
    """Remove what builds of other inputs left, and this one's unless its source was complete."""
    for work in folder.glob(f"{UNFINISHED}*"):
        if work != but or not (work / PREPARED).exists():
            shutil.rmtree(work)


def _built(chosen: package.Source, place: _Place, steps: Steps) -> Kernel:
    began = time.monotonic()
    with place.log.open("w") as file:

        def log(line: str) -> None:
            print(line, file=file, flush=True)

        try:
            if not (place.work / PREPARED).exists():
                _prepare(chosen, place, steps, log)
            _compile(place, steps, log)
            steps.begin("try it")
            kernel = _kept(chosen, place, time.monotonic() - began)
        except RunError as error:
            log(str(error))
            shutil.rmtree(place.work, ignore_errors=True)
            raise type(error)(f"{error}; the whole log is {place.log}") from error
    shutil.rmtree(place.work)
    place.log.unlink()
    steps.end()
    return kernel


def _prepare(chosen: package.Source, place: _Place, steps: Steps, log: Callable[[str], None]) -> None:
    """Unpack, change and configure the source."""
    scratch = place.work / "scratch"
    scratch.mkdir(parents=True)
    steps.begin("unpack the source" if chosen.archive else "download and unpack the source")
    package.unpack(chosen, place.tree, scratch, log)
    shutil.rmtree(scratch)
    steps.begin("change and configure it")
    source.change(place.tree)
    run((*_make(), f"KCONFIG_ALLCONFIG={source.FRAGMENT}", "allnoconfig"), place.tree, log)
    missing = source.not_in_force((place.tree / ".config").read_text())
    if missing:
        raise RunError(
            f"configuring the kernel: {', '.join(missing)} did not take effect in {chosen.version}"
        )
    (place.work / PREPARED).touch()


def _make() -> tuple[str, ...]:
    """Return the beginning of make's command. With ccache, a build after a small change takes less time."""
    return (*MAKE, "CC=ccache gcc") if shutil.which("ccache", path=SYSTEM_PATH) else MAKE


def _compile(place: _Place, steps: Steps, log: Callable[[str], None]) -> None:
    steps.begin("compile")

    def seen(line: str) -> None:
        log(line)
        steps.compiled(line)

    run((*_make(), f"-j{machine.cpus()}", "linux"), place.tree, seen, SAME_BYTES)


def _kept(chosen: package.Source, place: _Place, took_s: float) -> Kernel:
    """Try the kernel, and put it into its folder in one step."""
    new = place.work / "new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    output(("strip", "-o", str(new / PROGRAM), str(place.tree / "linux")))
    shutil.copy(place.tree / ".config", new / CONFIG)
    tried = trial(new / PROGRAM, place.work)
    missing = set(source.congestion_controls()) - set(tried.congestion_controls)
    if missing:
        raise CommandError(
            f"trying the kernel: it lacks the congestion controls {', '.join(sorted(missing))}"
        )
    kernel = Kernel(
        path=place.target / PROGRAM,
        version=tried.version,
        package=chosen.version,
        inputs=source.inputs(),
        congestion_controls=tried.congestion_controls,
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        compiler=output(("gcc", "--version")).splitlines()[0],
        build_s=round(took_s, 1),
        sha256=hashlib.sha256((new / PROGRAM).read_bytes()).hexdigest(),
    )
    fields = {name: value for name, value in kernel.to_json().items() if name not in {"path", "current"}}
    (new / RECORD).write_text(json.dumps(fields, indent=1) + "\n")
    if place.target.exists():
        shutil.rmtree(place.target)
    new.rename(place.target)
    return kernel
