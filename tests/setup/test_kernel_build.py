"""Building the guest's kernel: what is checked before, what a failure leaves. Nothing is compiled here."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import BusyError, CommandError, DeadlineError, HostUnfitError
from engines.linux.kernel import store
from engines.linux.kernel.source import PACKAGE, VERSION
from harness.cli.machine import first_build
from setup import kernel_build as building
from setup.kernel_build import LINES, SHARES, Moment, Steps, run
from tests.support.waiting import until

NEWER = "6.12.200-1"
MADISON = f"""linux-source-6.12 | {NEWER} | http://example.org bookworm-security/main amd64 Packages
linux-source-6.12 | {VERSION} | http://example.org bookworm-security/main amd64 Packages
linux-source-6.12 | {VERSION} | http://example.org bookworm-security/main Sources
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_versions_are_read_from_apt() -> None:
    assert building.offered_in(MADISON) == [NEWER, VERSION]
    assert building.offered_in("") == []


def test_the_tested_version_is_preferred() -> None:
    assert building.choose_package(VERSION, [NEWER], any_version=True).archive == building.ARCHIVE
    offered = building.offered_in(MADISON)
    assert building.choose_package(NEWER, offered, any_version=True) == building.KernelPackage(VERSION)


def test_another_version_needs_consent() -> None:
    with pytest.raises(HostUnfitError, match=rf"has {PACKAGE} {NEWER}, not {VERSION}.*--any-version"):
        building.choose_package(None, [NEWER], any_version=False)
    of_apt, of_archive = building.KernelPackage(NEWER), building.KernelPackage(NEWER, building.ARCHIVE)
    assert building.choose_package(None, [NEWER], any_version=True) == of_apt
    assert building.choose_package(NEWER, [], any_version=True) == of_archive
    with pytest.raises(HostUnfitError, match="sudo apt-get update"):
        building.choose_package(None, [], any_version=True)


def test_an_unfit_machine_is_refused_before_anything_starts(tmp_path: Path) -> None:
    building.check_disk(tmp_path, building.NEEDED_GB)
    with pytest.raises(HostUnfitError, match=r"sudo apt-get install bc binutils bison .*xz-utils"):
        building.check_machine(tmp_path, path=str(tmp_path))
    with pytest.raises(HostUnfitError, match=r"where 0\.3 GB are free"):
        building.check_disk(tmp_path, 0.3)


def test_progress_rises_to_the_end_and_knows_the_time_left() -> None:
    said: list[Moment] = []
    now = [0.0]
    steps = Steps(said.append, lambda: now[0])
    steps.begin("unpack the source")
    steps.begin("change and configure it")
    steps.begin("compile")
    for _ in range(LINES // 2):
        now[0] += 1.0
        steps.compiled("  CC      net/ipv4/tcp.o")
        steps.compiled("make[2]: nothing")
    half = said[-1]
    assert half.pct == pytest.approx(7.0 + SHARES["compile"] / 2, abs=1.0)
    assert half.left_s == pytest.approx(LINES / 2, rel=0.05)
    assert half.most_left_s == pytest.approx(LINES / 2, rel=0.05)
    steps.begin("try it")
    steps.end()
    shares = [moment.pct for moment in said]
    assert shares == sorted(shares)
    assert shares[-1] == 100.0


def test_the_time_left_is_a_range_that_holds_what_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first tenth is quick, as small files are; then the machine is busy for a while."""
    monkeypatch.setattr(building, "cpus", lambda: 2)
    said: list[tuple[float, Moment]] = []
    now = [0.0]
    steps = Steps(lambda moment: said.append((now[0], moment)), lambda: now[0])
    steps.begin("compile")
    for line in range(LINES):
        now[0] += 0.02 if line < LINES / 10 else 0.6 if line < LINES / 2 else 0.2
        steps.compiled("  CC      net/ipv4/tcp.o")
    known = [(at, moment) for at, moment in said if moment.left_s is not None]
    for at, moment in known:
        assert moment.left_s is not None and moment.most_left_s is not None
        assert moment.left_s <= moment.most_left_s
        assert moment.most_left_s > 0.6 * (now[0] - at), "never far too short"
    middle = [moment for _, moment in known if 60 < moment.pct < 80]
    assert any((moment.most_left_s or 0.0) > 1.5 * (moment.left_s or 1.0) for moment in middle)


def test_the_installer_has_the_packages_that_a_build_needs() -> None:
    script = (Path(__file__).parents[2] / "setup/install.sh").read_text()
    listed = re.search(r"^kernel_packages=\((.*)\)$", script, re.MULTILINE)
    assert listed is not None
    assert set(listed[1].split()) == {*building.PACKAGES.values(), "libc6-dev"}


def test_the_first_run_prints_steps_and_every_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what the kernel has, once it is built."""
    values = {field.name: field.name for field in dataclasses.fields(store.Kernel)}
    built = store.Kernel(**{**values, "congestion_controls": ("reno", "rf_lia")})  # type: ignore[arg-type]

    def build(progress: Callable[[Moment], None]) -> store.Kernel:
        for pct in range(7, 99):
            progress(Moment("compile", float(pct), 60.0))
        return built

    monkeypatch.setattr(building, "build", build)
    said: list[str] = []
    first_build(said.append)
    compiling = [line for line in said if "compile" in line]
    assert len(compiling) == 10 and all("1 min 00 s" in line for line in compiling)
    assert "reno, rf_lia" in said[-1]


def test_lines_of_a_program_are_handed_over(tmp_path: Path) -> None:
    said: list[str] = []
    run(("sh", "-c", "echo one; echo two >&2; printf three"), tmp_path, said.append)
    assert sorted(said) == ["one", "three", "two"]


def test_a_failing_program_is_shown_with_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"exit code 3: a \| undefined reference"):
        run(("sh", "-c", "echo a; echo undefined reference; exit 3"), tmp_path, lambda _: None)


def test_a_silent_program_is_ended_with_its_children(tmp_path: Path) -> None:
    begun = tmp_path / "pid"
    with pytest.raises(DeadlineError, match="printed nothing"):
        run(("sh", "-c", f"sleep 100 & echo $! > {begun}; wait"), tmp_path, lambda _: None, silent_s=0.3)
    _gone(int(begun.read_text()))


def test_a_program_ends_with_the_process_that_started_it() -> None:
    script = (
        "import pathlib\nfrom setup.kernel_build import run\n"
        "run(('sh', '-c', 'echo $$; sleep 100'), pathlib.Path('.'), lambda line: print(line, flush=True))"
    )
    with subprocess.Popen((sys.executable, "-c", script), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    _gone(child)


def _gone(pid: int) -> None:
    """Wait until a process is gone, or is only a zombie."""

    def gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return True

    until(gone, 10.0, f"the end of process {pid}")


def test_two_builds_exclude_each_other(tmp_path: Path) -> None:
    with (
        building.alone(tmp_path),
        pytest.raises(BusyError, match=rf"pid {os.getpid()}"),
        building.alone(tmp_path),
    ):
        pass
    with building.alone(tmp_path):
        pass


def test_remove_frees_everything() -> None:
    assert building.remove() == 0
    kept = store.folder() / "6.12-abc"
    kept.mkdir(parents=True)
    (kept / "linux").write_bytes(b"x" * 1000)
    (store.folder() / ".build-6.12-abc").mkdir()
    assert building.remove() >= 1000
    assert not store.folder().exists()


def test_a_failed_step_leaves_the_log_and_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "check_machine", lambda _folder: None)
    monkeypatch.setattr(building, "found_package", lambda _any: building.KernelPackage("6.12.1-1"))

    def broken(*_: object) -> None:
        raise CommandError("`tar` failed with exit code 2: unexpected end of file")

    monkeypatch.setattr(building, "unpack", broken)
    with pytest.raises(CommandError, match=r"unexpected end of file; the whole log is .*build\.log"):
        building.build(lambda _: None)
    assert "unexpected end of file" in (store.folder() / "build.log").read_text()
    assert list(store.folder().glob(".build-*")) == []
    assert store.current() is None


def test_the_report_of_a_guest_is_read() -> None:
    said = "RELEASE 6.12.117\r\nCONTROLS reno rf_lia\nKernel panic - not syncing: Attempted to kill init!"
    assert building.read_trial(said) == building.Trial("6.12.117", ("reno", "rf_lia"))


def test_a_guest_that_does_not_come_up_shows_its_last_lines() -> None:
    with pytest.raises(CommandError, match=r"did not come up .*ptrace: Operation not permitted"):
        building.read_trial("Checking ptrace...\nptrace: Operation not permitted")


def test_a_guest_that_panics_shows_why_and_not_the_trace() -> None:
    why = "userspace - ptrace set fp regs failed, errno = 14"
    trace = [f"[<{address:08x}>] ? show_stack+0x0/0xc0" for address in range(20)]
    said = ["Run init as init process", why, "Kernel panic - not syncing: Attempted to kill init!", *trace]
    with pytest.raises(CommandError, match=rf"did not come up .*{why}.*Kernel panic") as caught:
        building.read_trial("\n".join(said))
    assert "show_stack" not in str(caught.value)
