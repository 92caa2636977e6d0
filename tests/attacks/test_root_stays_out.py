"""Root that stays root works only where nobody else can change anything (H0, H1, H2, L9).

Root logged in itself, and the clone is root's. Mallory is an ordinary user of the machine. Each command that
names something of hers ends with one line before it reads or writes there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.privileges import ROOT

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(ROOT.stat().st_uid != 0, reason="root becomes the owner of this clone"),
]

REFABRIC = Path(sys.executable).with_name("refabric")
MALLORY = 61666
EXPERIMENT = "cs244-one-to-one"
POINT = ("--k", "4", "--subflows", "1", "--rate", "5", "--seconds", "1", "--warmup", "1")
WHY = "root works only where nobody else can change anything"
CODE = "from pathlib import Path\nPath({mark!r}).touch()\n"


@dataclass(frozen=True)
class Machine:
    """A folder of root's, mallory's, and two that everybody may write, one of them sticky."""

    private: Path
    mallory: Path
    public: Path
    sticky: Path
    mark: Path
    """Appears when code of mallory's runs."""

    def seen(self) -> list[tuple[str, int, int, int]]:
        """Return what is in all folders, with its owner, size and time."""
        found = sorted(self.private.parent.rglob("*"))
        return [(str(p), (s := p.lstat()).st_uid, s.st_size, s.st_mtime_ns) for p in found]


@pytest.fixture
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="refabric-attack-") as name:
        top = Path(name)
        top.chmod(0o755)
        found = Machine(top / "private", top / "mallory", top / "public", top / "sticky", top / "mark")
        for folder in (found.private, found.mallory, found.public, found.sticky):
            folder.mkdir(0o755)
        found.public.chmod(0o777)
        found.sticky.chmod(0o1777)
        os.chown(found.mallory, MALLORY, MALLORY)
        yield found


def as_mallory(*argv: str | Path) -> None:
    user = ("setpriv", "--reuid", str(MALLORY), "--regid", str(MALLORY), "--clear-groups")
    subprocess.run([*user, *argv], check=True, timeout=30)


def refabric(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    dropped = {"SUDO_UID", "SUDO_GID", "SUDO_USER"}
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    argv = [REFABRIC, *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False, cwd=cwd, env=env)


def check_refused(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert WHY in line


NAMING: dict[str, tuple[str, ...]] = {
    "run in real time": ("run", EXPERIMENT, *POINT, "--results", "HERS/results"),
    "run in virtual time": ("run", EXPERIMENT, *POINT, "--engine", "linux", "--results", "HERS/results"),
    "plan": ("plan", EXPERIMENT, "--results", "HERS/results"),
    "status": ("status", EXPERIMENT, "--results", "HERS/results"),
    "plot": ("plot", EXPERIMENT, "--results", "HERS/results"),
    "report": ("report", EXPERIMENT, "--results", "HERS/results"),
    "report --output": ("report", EXPERIMENT, "--results", "OURS", "--output", "HERS/page.html"),
    "report --compare": ("report", "--compare", "OURS", "HERS/results"),
    "compare": ("compare", "OURS", "HERS/results"),
    "results": ("results", "--results", "HERS/results"),
    "results remove": ("results", "remove", "--yes", "x", "--results", "HERS/results"),
    "export": ("export", EXPERIMENT, "--results", "HERS/results"),
    "export --output": ("export", EXPERIMENT, "--results", "OURS", "--output", "HERS/link"),
    "watch": ("watch", "HERS/results"),
    "new": ("new", "experiment", "HERS/" + "new.py"),
    "man": ("man", "HERS/man1"),
    "docs": ("docs", "--output", "HERS/site"),
    "config": ("plan", "--config", "HERS/config"),
    "save-config": ("plan", EXPERIMENT, "--engine", "max-min", "--save-config", "HERS/link"),
    "own experiment": ("run", "HERS/" + "mine.py"),
    "own algorithm": ("plan", EXPERIMENT, "--engine", "simulator", "--cc", "HERS/" + "mine.py"),
    "network": ("plan", EXPERIMENT, "--engine", "simulator", "--topology", "file:HERS/config"),
    "trace": ("plan", EXPERIMENT, "--engine", "simulator", "--workload", "trace:HERS/config"),
    "sizes": ("plan", EXPERIMENT, "--engine", "simulator", "--workload", "pairs:60:sizes=@HERS/config"),
    "link trace": ("plan", EXPERIMENT, "--engine", "simulator", "--link-trace", "@HERS/config"),
}


def written(machine: Machine, arguments: tuple[str, ...], hers: Path) -> list[str]:
    return [each.replace("HERS", str(hers)).replace("OURS", str(machine.private)) for each in arguments]


@pytest.fixture
def baited(machine: Machine) -> Machine:
    """Her folder with code that leaves a mark, a file that no reader accepts, and a link of hers."""
    hers = machine.mallory
    (machine.private / "secret").write_text("root's\n")
    for name, text in (("mine.py", CODE.format(mark=str(machine.mark))), ("config", "\0")):
        (hers / name).write_text(text)
        os.chown(hers / name, MALLORY, MALLORY)
    as_mallory("ln", "-s", machine.private / "created", hers / "link")
    as_mallory("mkdir", "-p", hers / "results" / EXPERIMENT, hers / "site")
    return machine


@pytest.mark.parametrize("arguments", NAMING.values(), ids=NAMING)
def test_no_command_works_in_a_folder_of_hers(baited: Machine, arguments: tuple[str, ...]) -> None:
    """H0, H2, L9, and inputs of hers."""
    before = baited.seen()
    check_refused(refabric(*written(baited, arguments, baited.mallory)))
    assert baited.seen() == before


OF_EACH_KIND = ("run in virtual time", "export --output", "config", "own experiment")


@pytest.mark.parametrize("naming", OF_EACH_KIND)
@pytest.mark.parametrize("place", ["link", "link on the way", "public", "sticky"])
def test_no_command_works_where_she_could_come_first(baited: Machine, place: str, naming: str) -> None:
    ours = baited.private / "folder"
    ours.mkdir()
    for name in ("mine.py", "config"):
        shutil.copy(baited.mallory / name, ours)
    places = {
        "link": baited.sticky / "link",
        "link on the way": baited.sticky / "link" / "folder",
        "public": baited.public,
        "sticky": baited.sticky,
    }
    as_mallory("ln", "-s", baited.private if place == "link on the way" else ours, baited.sticky / "link")
    before = baited.seen()
    check_refused(refabric(*written(baited, NAMING[naming], places[place])))
    assert baited.seen() == before


def test_defaults_in_a_current_folder_of_hers_are_refused(baited: Machine) -> None:
    hers = baited.mallory
    before = baited.seen()
    check_refused(refabric("run", EXPERIMENT, *POINT, "--engine", "max-min", cwd=hers))
    check_refused(refabric("docs", cwd=hers))
    assert baited.seen() == before


def test_a_file_of_root_with_her_text_does_not_run(machine: Machine) -> None:
    """H1: /proc/PID/environ of a program of root's that she started belongs to root and has her text."""
    code = CODE.format(mark=str(machine.mark))
    program = subprocess.Popen(["sleep", "60"], env={"A": f"1\n{code}"})
    try:
        as_mallory("ln", "-s", f"/proc/{program.pid}/environ", machine.mallory / "mine.py")
        check_refused(refabric("run", machine.mallory / "mine.py"))
        cc = ("--engine", "simulator", "--cc", machine.mallory / "mine.py")
        check_refused(refabric("plan", EXPERIMENT, *cc))
    finally:
        program.kill()
        program.wait()
    assert not machine.mark.exists()


def test_in_a_folder_of_root_everything_works(machine: Machine) -> None:
    ours = machine.private
    results = ("--results", ours / "results")
    mine, saved, archive = ours / "mine.py", ours / "saved.toml", ours / "all.zip"
    for arguments in (
        ("new", "experiment", mine),
        ("run", EXPERIMENT, *POINT, "--engine", "max-min", *results, "--save-config", saved),
        ("plan", "--config", saved),
        ("run", mine, "--engine", "simulator", "--profile", "smoke", *results),
        ("report", EXPERIMENT, *results, "--output", ours / "page.html"),
        ("export", EXPERIMENT, *results, "--output", archive),
        ("results", *results),
        ("man", ours / "man1"),
    ):
        done = refabric(*arguments)
        assert done.returncode == 0, done.stderr
    assert archive.stat().st_size > 0
    assert {path.lstat().st_uid for path in ours.rglob("*")} == {0}
