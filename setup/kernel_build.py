"""Build the guest's kernel. About 8 minutes on two CPUs.

The source is unpacked beside the built kernels, in a hidden folder that is removed afterwards. An interrupted
build continues where it stopped. Only one build can run at a time. The bytes depend on the compiler alone:
date, user and host in the kernel's version are fixed.

Of the programs of a build every line goes to a log, silence has a deadline, and none outlives this one.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import hashlib
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from common.errors import BusyError, CommandError, DeadlineError, HostUnfitError, RunError
from common.files import storing
from common.processes import SYSTEM_PATH, environment
from engines.linux import guest
from engines.linux.kernel import source, store
from engines.linux.kernel.source import PACKAGE, VERSION
from engines.linux.kernel.store import CONFIG, PROGRAM, RECORD, Kernel

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
    check_machine(folder)
    chosen = found_package(any_version)
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


def _built(chosen: KernelPackage, place: _Place, steps: Steps) -> Kernel:
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


def _prepare(chosen: KernelPackage, place: _Place, steps: Steps, log: Callable[[str], None]) -> None:
    """Unpack, change and configure the source."""
    scratch = place.work / "scratch"
    scratch.mkdir(parents=True)
    steps.begin("unpack the source" if chosen.archive else "download and unpack the source")
    unpack(chosen, place.tree, scratch, log)
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

    run((*_make(), f"-j{cpus()}", "linux"), place.tree, seen, SAME_BYTES)


def _kept(chosen: KernelPackage, place: _Place, took_s: float) -> Kernel:
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


PACKAGES = {
    "gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "xz": "xz-utils",
    "tar": "tar", "perl": "perl", "strip": "binutils", "setpriv": "util-linux", "dpkg-deb": "dpkg",
}  # fmt: skip
"""The package of each program that a build runs."""
HEADER = Path("/usr/include/stdio.h")
NEEDED_GB = 2.5
"""The unpacked source, the objects, and the package while it is unpacked."""


def check_machine(folder: Path, path: str | None = None) -> None:
    """Check CPU, programs (in `path`, default: PATH) and the disk of `folder`; raises HostUnfitError."""
    guest.check_machine()
    missing = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool, path=path) is None})
    if not HEADER.exists():
        missing.append("libc6-dev")
    if missing:
        raise HostUnfitError(
            "building the kernel needs packages that are missing: "
            f"run `sudo apt-get install {' '.join(missing)}`"
        )
    check_disk(folder, shutil.disk_usage(existing(folder)).free / 1e9)


def check_disk(folder: Path, free_gb: float) -> None:
    """Raise HostUnfitError if there is too little space for a build."""
    if free_gb < NEEDED_GB:
        raise HostUnfitError(
            f"building the kernel needs {NEEDED_GB:g} GB in {folder}, where {free_gb:.1f} GB are free: "
            "free some space, or set XDG_CACHE_HOME to a folder on another disk"
        )


def existing(folder: Path) -> Path:
    """Return the nearest folder above that exists."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


ARCHIVE = Path(f"/usr/src/{PACKAGE}.tar.xz")
"""Where the package puts the source."""
LEFT_OUT = (
    "*/Documentation/*/*", "*/tools/testing/*", "*/drivers/gpu/*.[ch]", "*/arch/[!ux]*/*.[chS]",
    "*.dts", "*.dtsi",
)  # fmt: skip
"""What no build of User-Mode Linux reads: half of the source."""


@dataclass(frozen=True)
class KernelPackage:
    """A version of the package; `archive` is None if it is to be downloaded."""

    version: str
    archive: Path | None = None


def choose_package(installed: str | None, offered: Sequence[str], any_version: bool) -> KernelPackage:
    """Return the version to build: the tested one, or with `any_version` what there is.

    `installed` is the installed version, `offered` what apt can download, the newest first. Pure but for the
    errors: raises HostUnfitError if there is no version, or only another one and not `any_version`.
    """
    if installed == VERSION:
        return KernelPackage(VERSION, ARCHIVE)
    if VERSION in offered:
        return KernelPackage(VERSION)
    others = [installed] if installed else list(offered)
    if not others:
        raise HostUnfitError(
            f"apt knows no package {PACKAGE}, which the kernel is built from: run `sudo apt-get update`; "
            "Debian 12 (with its security updates) and Debian 13 have it"
        )
    if not any_version:
        raise HostUnfitError(
            f"this machine has {PACKAGE} {others[0]}, not {VERSION}, with which the changes to the kernel "
            "were tested: run `refabric kernel build --any-version` to build it all the same (the build "
            "fails where a change does not fit)"
        )
    return KernelPackage(others[0], ARCHIVE if installed else None)


def found_package(any_version: bool) -> KernelPackage:
    """Return the version to build on this machine. Raises HostUnfitError as `choose_package` does."""
    if shutil.which("apt-cache") is None or shutil.which("dpkg-query") is None:
        raise HostUnfitError(
            f"the kernel is built from the Debian package {PACKAGE}, and this system has no apt: build it on "
            "Debian 12 or 13 and copy the folder that `refabric kernel status` shows"
        )
    return choose_package(_installed(), offered_in(output(("apt-cache", "madison", PACKAGE))), any_version)


def offered_in(madison: str) -> list[str]:
    """Return the versions in the output of `apt-cache madison`, each once, in its order: the newest first."""
    rows = [line.split("|") for line in madison.splitlines()]
    return list(dict.fromkeys(row[1].strip() for row in rows if len(row) == 3))


def _installed() -> str | None:
    if not ARCHIVE.is_file():
        return None
    return output(("dpkg-query", "-W", "-f", "${Version}", PACKAGE), may_fail=True).strip() or None


def unpack(chosen: KernelPackage, tree: Path, scratch: Path, log: Callable[[str], None]) -> None:
    """Unpack the source into `tree`, without what no build reads. `scratch` is an empty folder for downloads.

    Raises RunError, whose message has the last lines of the program that failed.
    """
    archive = chosen.archive or _downloaded(chosen, scratch, log)
    tree.mkdir()
    excludes = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    run(("tar", "-xJf", str(archive), "--strip-components=1", *excludes), tree, log)


def _downloaded(chosen: KernelPackage, scratch: Path, log: Callable[[str], None]) -> Path:
    run(("apt-get", "download", f"{PACKAGE}={chosen.version}"), scratch, log)
    packages = list(scratch.glob("*.deb"))
    if len(packages) != 1:
        raise RunError(f"downloading {PACKAGE}: apt-get left {len(packages)} packages in {scratch}, not one")
    run(("dpkg-deb", "-x", packages[0].name, "unpacked"), scratch, log)
    packages[0].unlink()
    return scratch / "unpacked" / ARCHIVE.relative_to("/")


BOOT_S = 60.0
_INIT = """#!/bin/sh
/bin/mount -t proc proc /proc
echo "RELEASE $(/bin/cat /proc/sys/kernel/osrelease)"
echo "CONTROLS $(/bin/cat /proc/sys/net/ipv4/tcp_available_congestion_control)"
"""
_OPTIONS = (
    "mem=256M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "con=null", "con0=fd:0,fd:1",
    "time-travel=inf-cpu", f"time-travel-start={guest.START_NS}", "quiet", "noreboot", "panic=-1",
)  # fmt: skip
"""The guest ends by a panic, because its first program ends."""


@dataclass(frozen=True)
class Trial:
    """What a guest found: Linux's version, and the congestion controls by their names in the kernel."""

    version: str
    congestion_controls: tuple[str, ...]


def trial(program: Path, scratch: Path) -> Trial:
    """Boot the kernel once, with files in the folder `scratch`. Raises CommandError with what it printed."""
    return read_trial(boot(program, _INIT, scratch))


def boot(program: Path, script: str, scratch: Path, seed: int = 1) -> str:
    """Run a shell script as the first program of a guest, and return what it and the kernel print.

    The guest sees the files of this machine, and cannot write to them. `scratch` gets the script and the
    guest's memory. It ends with the script, or after BOOT_S seconds without a line.
    """
    init = scratch / "init"
    init.write_text(script)
    init.chmod(0o755)
    said: list[str] = []
    options = (*_OPTIONS, f"rng_seed={seed}", f"uml_dir={scratch}", f"init={init}")
    try:
        run((str(program), *options), scratch, said.append, {"TMPDIR": str(scratch)}, BOOT_S)
    except RunError as error:  # a panic, as intended; readers miss their lines if it was not
        said.append(str(error))
    return "\n".join(said)


def read_trial(said: str) -> Trial:
    """Return what the guest's lines say. Raises CommandError if they are not all there."""
    release = re.search(r"^RELEASE (\S+)", said, re.MULTILINE)
    controls = re.search(r"^CONTROLS (.+)", said, re.MULTILINE)
    if release is None or controls is None:
        lines = said.strip().splitlines()
        panic = next((at for at, line in enumerate(lines) if "Kernel panic" in line), None)
        told = lines[-6:] if panic is None else lines[max(panic - 4, 0) : panic + 1]
        raise CommandError(
            f"booting the built kernel: it did not come up on this machine: {' | '.join(told)}"
        )
    return Trial(release[1], tuple(controls[1].split()))


LINES = 1428
"""Lines that make prints in a whole build: one per file that it makes."""
SHARES = {
    "download and unpack the source": 4.0, "unpack the source": 4.0, "change and configure it": 3.0,
    "compile": 92.0, "try it": 1.0,
}  # fmt: skip
"""What each step takes of the whole time, in percent."""
_MADE = re.compile(r"^  [A-Z][A-Z0-9]* +\S")
_ENOUGH = 0.05
"""The share of the compilation from which its speed is known."""
_LATELY = LINES // 10
"""The speed of so many lines is that of late. Other programs of the machine change it within minutes."""
_USUAL_CPU_S = 900.0
"""CPU time of a build on the reference machine. The first files, which are small, say nothing of the rest."""


@dataclass(frozen=True)
class Moment:
    """Where a build is: the step, the share of the whole in percent, and how long the rest takes, from
    `left_s` to `most_left_s` seconds (None: not known)."""

    step: str
    pct: float
    left_s: float | None = None
    most_left_s: float | None = None


Progress = Callable[[Moment], None]


class Steps:
    """Follows a build and reports each change of a whole percent. `clock` is in seconds."""

    def __init__(self, report: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock = report, clock
        self._step = ""
        self._before_pct = 0.0
        self._began_s = clock()
        self._made = 0
        self._lately: collections.deque[float] = collections.deque(maxlen=_LATELY)
        """When the last lines of make came."""
        self._shown_pct = -1

    def begin(self, step: str) -> None:
        """Begin a step of SHARES, in that order."""
        self._before_pct += SHARES.get(self._step, 0.0)
        self._step, self._began_s, self._made = step, self._clock(), 0
        self._tell(0.0)

    def compiled(self, line: str) -> None:
        """Count a line of make."""
        if _MADE.match(line):
            self._made += 1
            self._lately.append(self._clock())
            self._tell(min(self._made / LINES, 0.99))

    def end(self) -> None:
        """The build is complete."""
        self._report(Moment("done", 100.0, 0.0, 0.0))

    def _tell(self, share: float) -> None:
        pct = self._before_pct + share * SHARES[self._step]
        if int(pct) == self._shown_pct and share > 0:
            return
        self._shown_pct = int(pct)
        self._report(Moment(self._step, pct, *self._left_s(share)))

    def _left_s(self, share: float) -> tuple[float, float] | tuple[None, None]:
        """Return the least and the most seconds left by the speed so far, the speed of late and, at first,
        what a build usually takes."""
        if share < _ENOUGH:
            return None, None
        now_s, lines = self._clock(), len(self._lately)
        whole = [(now_s - self._began_s) / share]
        if lines > 1:
            whole.append((now_s - self._lately[0]) * LINES / (lines - 1))
        usual_s = _USUAL_CPU_S / cpus() * SHARES["compile"] / 100
        return (1 - share) * min(whole), (1 - share) * max(*whole, (1 - share) * usual_s)


SILENT_S = 1200.0
"""How long a program may print nothing. Linking on a busy machine takes a minute."""
QUICK_S = 60.0
LAST_LINES = 8
_STOP_S = 5.0


def output(argv: Sequence[str], may_fail: bool = False) -> str:
    """Return what a quick program prints. Raises CommandError if it fails and may not, or takes a minute."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=QUICK_S, check=False, env=environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"running `{' '.join(argv)}`: {error}") from error
    if done.returncode and not may_fail:
        said = done.stderr.strip().splitlines()[-1:] or [""]
        raise CommandError(f"`{' '.join(argv)}` failed with exit code {done.returncode}: {said[0]}")
    return done.stdout


def run(
    argv: Sequence[str],
    cwd: Path,
    on_line: Callable[[str], None],
    changes: Mapping[str, str] | None = None,
    silent_s: float = SILENT_S,
) -> None:
    """Run a program in `cwd`; `on_line` gets each line of its output and errors.

    The program and its children end when this process does, however that ends, or when `on_line` raises.
    Raises CommandError with the last lines if it fails, DeadlineError if it prints nothing for `silent_s`.
    """
    last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
    with _started(argv, cwd, changes) as process:
        for line in _lines(process, " ".join(argv), silent_s):
            last.append(line)
            on_line(line)
        code = process.wait(timeout=QUICK_S)
    if code:
        raise CommandError(f"`{' '.join(argv)}` failed with exit code {code}: {' | '.join(last)}")


@contextlib.contextmanager
def _started(
    argv: Sequence[str], cwd: Path, changes: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process in a session of its own, whose whole group ends with the context."""
    try:
        process = subprocess.Popen(
            ("setpriv", "--pdeathsig", "TERM", *argv),
            cwd=cwd,
            env=environment(changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"starting `{' '.join(argv)}`: {error.strerror}") from error
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
                break
    if process.stdout is not None:
        process.stdout.close()


def _lines(process: subprocess.Popen[bytes], what: str, silent_s: float) -> Iterator[str]:
    if process.stdout is None:
        return
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        until = time.monotonic() + silent_s
        while True:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise DeadlineError(f"`{what}` printed nothing for {silent_s:g} s; it was ended")
            data = os.read(process.stdout.fileno(), 1 << 16)
            until = time.monotonic() + silent_s
            if not data:
                break
            *whole, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")
