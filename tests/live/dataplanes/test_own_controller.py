"""A user's own controller programs Open vSwitch: one that runs inside, and one outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.errors import HostUnfitError
from engines.emulation.dataplanes.ovs.daemons import check_installed
from tests.soak.kill_matrix import go_through

pytestmark = pytest.mark.emulation

ROOT = Path(__file__).resolve().parents[3]
HUB = Path(__file__).with_name("hub.py")
INSIDE = f"cmd:{sys.executable} {HUB} 6653"
PING = "s1h0 ping -c2 -W5 s1h2\n"


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    try:
        check_installed()
    except HostUnfitError as error:
        pytest.skip(str(error))


@pytest.fixture
def hub() -> Iterator[int]:
    """Yield the port of a controller that runs on this machine, outside of every run."""
    with subprocess.Popen([sys.executable, str(HUB), "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def refabric(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("refabric")), *arguments], input=stdin, cwd=ROOT, timeout=180,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def shell(controller: str) -> subprocess.CompletedProcess[str]:
    return refabric("shell", "--dataplane", "ovs", "--controller", controller, "star,3", stdin=PING)


def test_a_command_runs_inside_and_decides() -> None:
    done = shell(INSIDE)
    assert "2 received" in done.stdout, done.stderr


def test_a_program_outside_is_reached(hub: int) -> None:
    done = shell(f"remote:{hub}")
    assert "2 received" in done.stdout, done.stderr


def test_nothing_is_left_whichever_part_is_killed() -> None:
    """One after another, in one results folder: it must be complete in the end, like an undisturbed run's."""
    any_of = "outside controller|parent|relay"
    found = go_through(kills=3, seed=1, only=f"remote: SIGKILL to ({any_of}) at traffic")
    assert found["faults"] == []
    assert [cell.split()[3] for cell in found["cells"]] == ["outside", "parent", "relay"]
    assert found["completed"] == 1


def test_a_run_is_carried_by_it(hub: int, tmp_path: Path) -> None:
    done = refabric(
        "run", "cs244-one-to-one", "--topology", "star,3", "--dataplane", "ovs", "--rate", "1", "--subflows",
        "1", "--seconds", "3", "--warmup", "1", "--controller", f"remote:{hub}", "--results", str(tmp_path),
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    assert "failed" not in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("controller", "words"),
    [
        ("remote:1", "start the controller first"),
        ("cmd:no-such-program", "there is no program no-such-program"),
        (f"cmd:{sys.executable} -c raise(SystemExit('broken'))", "broken"),
    ],
)
def test_one_that_does_not_work_is_one_line(controller: str, words: str) -> None:
    done = shell(controller)
    assert done.returncode != 0
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
