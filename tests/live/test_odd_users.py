"""Unusual users and machines: one clear line, exit code 2 or 3, and nothing is left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from common.privileges import ROOT
from harness.results.store import load

pytestmark = pytest.mark.emulation

REFABRIC = Path(sys.executable).with_name("refabric")
EXPERIMENT = "cs244-one-to-one"
POINT = ("--k", "4", "--subflows", "1", "--rate", "5")
SHORT = (*POINT, "--seconds", "1", "--warmup", "1")
NOBODY = 61234
AS_NOBODY = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
needs_readable_clone = pytest.mark.skipif(
    os.geteuid() == 0 and subprocess.run([*AS_NOBODY, "test", "-x", REFABRIC], check=False).returncode != 0,
    reason="other users cannot enter this clone",
)


def refabric(
    *arguments: str, before: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run refabric in a mount namespace of its own, after the shell commands `before`."""
    script = f'set -e\n{before}\nexec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(REFABRIC), *arguments]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


def only_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the error, which must be one line without a traceback."""
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("refabric: ")]
    return line


@pytest.fixture
def shared() -> Iterator[Path]:
    """Yield a folder that every user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


ALICE = {"SUDO_UID": "alice", "SUDO_GID": "x", "SUDO_USER": "alice"}
NOBODY_HERE = {"SUDO_UID": "4000000", "SUDO_GID": "4000000", "SUDO_USER": "nobody-here"}


@needs_readable_clone
def test_results_are_of_the_caller_of_sudo_even_of_one_who_does_not_exist(shared: Path) -> None:
    os.chown(shared, 4000000, 4000000)
    where = ("--results", str(shared / "results"))
    done = refabric("run", EXPERIMENT, *POINT, "--engine", "max-min", *where, env={**NOBODY_HERE, "HOME": ""})
    assert done.returncode == 0, done.stderr
    assert {path.lstat().st_uid for path in shared.rglob("*")} == {4000000}


@pytest.mark.skipif(ROOT.stat().st_uid != 0, reason="root becomes the owner of this clone")
def test_a_uid_of_sudo_that_is_no_number(tmp_path: Path) -> None:
    where = ("--results", str(tmp_path / "results"))
    done = refabric("run", EXPERIMENT, *POINT, "--engine", "max-min", *where, env={**ALICE, "HOME": ""})
    assert done.returncode == 0, done.stderr


@needs_readable_clone
def test_a_user_who_does_not_exist_can_plan_real_hosts() -> None:
    planned = refabric("plan", EXPERIMENT, "--k", "4", "--engine", "mininet", env=NOBODY_HERE)
    assert planned.returncode == 0, planned.stderr


def test_few_open_files(tmp_path: Path) -> None:
    where = ("--results", str(tmp_path / "results"))
    done = refabric("run", EXPERIMENT, *POINT, "--engine", "max-min", *where, before="ulimit -n 256")
    assert done.returncode == 0, done.stderr


def test_a_read_only_clone() -> None:
    root = REFABRIC.parents[2]
    frozen = f"mount --bind {root} {root}\nmount -o remount,ro,bind {root}\ncd {root}"
    done = refabric("run", EXPERIMENT, *POINT, "--engine", "max-min", "--results", "fresh/r", before=frozen)
    assert done.returncode == 2
    assert "Read-only file system; choose a folder you can write to with --results DIR" in only_line(done)


@pytest.mark.machine
def test_without_setpriv(tmp_path: Path) -> None:
    nothing, results = tmp_path / "nothing", tmp_path / "results"
    nothing.write_text("")
    hidden = "\n".join(f"mount --bind {nothing} {path}" for path in ("/usr/bin/setpriv", "/bin/setpriv"))
    done = refabric("run", EXPERIMENT, *SHORT, "--results", str(results), before=hidden)
    assert done.returncode == 3, done.stdout
    assert "setpriv is missing, or may not be run; run: sudo apt-get install util-linux" in only_line(done)
    assert list((results / EXPERIMENT).iterdir()) == []


@pytest.mark.machine
def test_in_a_container_without_privileges(tmp_path: Path) -> None:
    results = tmp_path / "results"
    bare = 'set -- setpriv --bounding-set -all --inh-caps -all "$@"'
    done = refabric("run", EXPERIMENT, *SHORT, "--results", str(results), before=bare)
    assert done.returncode == 3, done.stdout
    assert "run as root, not in an unprivileged container" in only_line(done)
    assert list((results / EXPERIMENT).iterdir()) == []


@needs_readable_clone
def test_an_ordinary_user_without_a_home() -> None:
    before = f'cd /\nset -- {" ".join(AS_NOBODY)} "$@"'
    done = refabric(
        "run", EXPERIMENT, *POINT, "--engine", "max-min", before=before, env={"HOME": "/nonexistent"}
    )
    assert done.returncode == 2
    assert "Permission denied; choose a folder you can write to with --results DIR" in only_line(done)


@pytest.mark.parametrize("kbytes", [4, 16, 40, 64, 160, 320])
def test_a_disk_that_is_full_at_some_write(tmp_path: Path, kbytes: int) -> None:
    """Wherever it fills up: one line, finished points kept, and nothing half written."""
    disk = f"mount -t tmpfs -o mode=700,size={kbytes}k,nr_inodes=400 disk {tmp_path}"
    script = f'set +e\n"$@"\ncode=$?\nfind {tmp_path} -name ".*"\nset -- sh -c "exit $code"'
    run = ("run", EXPERIMENT, *POINT, "--engine", "max-min", "--results", str(tmp_path / "results"))
    done = refabric(*run, before=f"{disk}\n{script}")
    assert done.returncode == 3, done.stderr
    assert "No space left on device; free some space" in only_line(done)
    assert [each for each in done.stdout.splitlines() if each.startswith(f"{tmp_path}/")] == []


def test_a_clock_that_is_set_back_an_hour_during_a_run(tmp_path: Path) -> None:
    """No duration is measured by the wall clock, which jumps at each reading here."""
    results = tmp_path / "results"
    arguments = ["refabric", "run", EXPERIMENT, *POINT, "--engine", "max-min", "--results", str(results)]
    program = f"""
import datetime, itertools, sys, time
jumps = itertools.count()
really = time.time
time.time = lambda: really() - 3600 * next(jumps)
class Jumping(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
datetime.datetime = Jumping
from experiments.command import main
sys.argv = {arguments!r}
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    points = load(results / EXPERIMENT)
    assert len(points) == 2
    assert all(0 <= point.elapsed_s < 60 for point in points)
    assert all(0 <= attempt.elapsed_s < 60 for point in points for attempt in point.attempts)


OWNER = 12345
STUB = """#!/bin/sh
echo "$(id -u) $*" >> "{log}"
mkdir -p cache && touch "cache/$(id -u)"
"""


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def test_the_whole_suite_under_sudo_leaves_no_files_of_root(shared: Path) -> None:
    """Run run_tests.sh itself, with stubs in place of its tools; they log the user they run as."""
    clone, log = shared / "clone", shared / "log"
    for tool in (
        "setup/install.sh",
        ".venv/bin/ruff",
        ".venv/bin/lint-imports",
        ".venv/bin/mypy",
        ".venv/bin/python",
    ):
        (clone / tool).parent.mkdir(parents=True, exist_ok=True)
        (clone / tool).write_text(STUB.format(log=log) if tool != "setup/install.sh" else "#!/bin/sh\n")
        (clone / tool).chmod(0o755)
    shutil.copy(REFABRIC.parents[2] / "run_tests.sh", clone)
    log.touch()
    log.chmod(0o666)
    subprocess.run(["chown", "-R", f"{OWNER}:{OWNER}", str(clone)], check=True)
    subprocess.run([clone / "run_tests.sh"], check=True, timeout=60)
    lines = log.read_text().splitlines()
    assert [line.split()[0] for line in lines] == [str(OWNER)] * 5 + ["0"] * 3
    assert all("-B -m pytest -p no:cacheprovider -m emulation and " in line for line in lines[-3:])
    assert owners(clone / "cache") == {OWNER, 0}, "the stub itself writes what pytest does not"
    assert all("-m emulation" not in line for line in lines[:-3])


WHO = """
import json, os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({"uid": os.getuid(), "gid": os.getgid(), "rights": int(status["CapPrm"], 16),
                  "new": int(status["NoNewPrivs"]), "owner": os.stat(".").st_uid}))
"""
WHO_APP = """
files = ["who.txt"]
[programs.who]
run = "{python} who.txt"
hosts = "last"
measure = "json"
ends_run = true
"""


@needs_readable_clone
@pytest.mark.machine
def test_own_programs_are_the_caller_of_sudo(shared: Path) -> None:
    os.chown(shared, 4000000, 4000000)
    for name, text in (("who.txt", WHO), ("who.toml", WHO_APP)):
        (shared / name).write_text(text)
        (shared / name).chmod(0o644)
    what = ("--topology", "star,2", "--workload", f"app:{shared}/who.toml", "--engine", "mininet")
    how = ("--subflows", "1", "--rate", "20", "--seconds", "3", "--results", str(shared / "results"))
    done = refabric("run", EXPERIMENT, *what, *how, env={**NOBODY_HERE, "HOME": ""})
    points = load(shared / "results" / EXPERIMENT)
    (point,) = [each for each in points if each.spec.workload.matrix == "app"]
    found = {name: point.metric(f"who_{name}_mean") for name in ("uid", "gid", "owner", "new", "rights")}
    assert found == {"uid": 4000000, "gid": 4000000, "owner": 4000000, "new": 1, "rights": 0}, done.stderr
