"""Guests of the engine `linux` (L6, L7 of the attacks): what they write, and what is left of them.

The guests are those of an unprivileged user. They need a kernel (`refabric kernel build`).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.linux import guest, launch
from engines.linux.kernel.store import current
from engines.linux.launch import MEMORY, ROOT
from tests.support.waiting import until

KERNEL = current()
pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
    pytest.mark.skipif(KERNEL is None, reason="no kernel for guests: run `refabric kernel build`"),
]
UID = 61666
AS_USER = ("setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups", "--no-new-privs")
KILLS, WITHIN_S = 12, 0.03
GUEST = """
import json, sys
sys.path.append(sys.argv[1])
from pathlib import Path
from engines.linux import guest
from engines.linux.kernel.store import current
asked = guest.GuestSpec(
    kernel=current().path, memory_mb=256, seed=5, target="tests.support.scenarios.guests:" + sys.argv[3],
    request=json.loads(sys.argv[4]), folder=Path(sys.argv[2]), patience_s=60.0, limit_s=60.0,
)
guest.run(asked, None, lambda report: print(json.dumps(report), flush=True))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """Yield a folder of the user's, with the guests' kernel in its cache."""
    assert KERNEL
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        shutil.copytree(KERNEL.path.parent, path / "cache/refabric/kernels" / KERNEL.path.parent.name)
        path.chmod(0o755)
        os.chown(path, UID, UID)
        yield path


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}


def as_user(home: Path, *argv: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*AS_USER, *argv], cwd=ROOT, env=environment(home), stdout=pipe, stderr=pipe, text=True
    )


def guest_of(home: Path, number: int, scenario: str, request: object = None) -> subprocess.Popen[str]:
    folder = home / str(number)
    folder.mkdir()
    os.chown(folder, UID, UID)
    arguments = (str(ROOT), str(folder), scenario, json.dumps(request))
    return as_user(home, sys.executable, "-c", GUEST, *arguments)


def processes(folder: Path, kernels_only: bool = False) -> list[int]:
    """Return the processes that work in the folder, a parent of guests too unless `kernels_only`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_kernel = (entry / "exe").readlink().name == "linux"
            if (entry / "cwd").readlink().is_relative_to(folder) and (is_kernel or not kernels_only):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def memory_folders() -> list[Path]:
    """Return the user's: guests of other tests run beside these."""
    found = [path for folder in guest.MEMORY_FOLDERS for path in folder.glob(f"{MEMORY}*")]
    return [path for path in found if path.exists() and path.stat().st_uid == UID]


@pytest.mark.skipif(not launch.supported(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("folder", guest.MEMORY_FOLDERS)
def test_l6_a_guest_cannot_write_where_the_machine_has_its_memory(home: Path, folder: Path) -> None:
    """L6: root of a guest mounts /dev/shm of the machine, which its user may write, and writes there."""
    with guest_of(home, 0, "mount_the_machine", str(folder)) as process:
        said, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert json.loads(said) == {"mounted": True, "written": False}
    assert not (folder / "from-a-guest").exists()
    assert not memory_folders()


def test_l7_nothing_is_left_of_guests_killed_while_they_start(home: Path) -> None:
    """L7: the engine is killed while User-Mode Linux stops and traces its first processes. Before guests had
    a parent of their own, 4 of 150 such kills left a stopped process."""
    rng = random.Random(1)
    for number in range(KILLS):
        with guest_of(home, number, "spin") as process:
            deadline_s = time.monotonic() + 60
            while not processes(home, kernels_only=True):
                assert process.poll() is None and time.monotonic() < deadline_s
                time.sleep(0.0005)
            at_s = rng.uniform(0.0, WITHIN_S)
            time.sleep(at_s)
            process.kill()
            process.communicate(timeout=20)
        until(lambda: not processes(home), 5.0, f"the end after kill {number}, after {at_s:.3f} s")
    assert not memory_folders()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_parent_is_killed(home: Path, how: signal.Signals) -> None:
    with guest_of(home, 0, "spin") as process:
        assert process.stdout and json.loads(process.stdout.readline()) == {"spinning": True}
        assert processes(home, kernels_only=True)
        process.send_signal(how)
        process.communicate(timeout=30)
    until(lambda: not processes(home), 30.0, "the guest's end")
    assert not memory_folders()
    assert not (home / ".uml").exists()


def test_l7_a_full_disk_in_a_worker_ends_the_sweep_with_3_and_one_line(home: Path) -> None:
    """L7: points with guests run in workers, which report a full disk to the sweep as what it is."""
    results = home / "results"
    results.mkdir()
    mount = f"mount -t tmpfs -o size=16k,uid={UID},mode=755 none {results} && exec {' '.join(AS_USER)} "
    options = "cs244-one-to-one --engine linux --k 4 --subflows 1,2 --warmup 1 --seconds 2 --results"
    command = f"{mount} {sys.executable} -m refabric.command run {options} {results}"
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", command],
        cwd=ROOT, env=environment(home), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    lines = [line for line in done.stderr.splitlines() if "No space left on device" in line]
    assert len(lines) == 1 and lines[0].startswith("refabric: ") and lines[0] == done.stderr.splitlines()[-1]
