"""setup/install.sh and its users (L11, L12 of the attacks): what it runs as root, whom it waits for.

Each clone belongs to an unprivileged user, and has stubs in place of Python, which log the user they run as.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UID, MALLORY = 61666, 61667
pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]
COPIED = ("setup/install.sh", "setup/requirements-source.txt", "docs/site/requirements.txt", "pyproject.toml")
LOGGED = '#!/bin/bash\nprintf "%s %s %s %s\\n" "$UID" "$(id -G)" "$HOME" "$*" >>"{log}"\n'
PYTHON = """
[ "$1 $2" != "-m venv" ] || {{
    mkdir -p "${{!#}}/bin" && cp "$0" "${{!#}}/bin/pip" && cp "$0" "${{!#}}/bin/python"
    finder="${{!#}}/lib/python3/site-packages/_editable_skbc_refabric.py"
    mkdir -p "${{finder%/*}}" && touch "$finder"
}}
"""


LOCKER = """
import fcntl, os, sys, time
kept = []
for path in sys.stdin.read().split(chr(0)):
    try:
        kept.append(os.open(path, os.O_RDONLY))
        fcntl.flock(kept[-1], fcntl.LOCK_EX)
    except PermissionError:
        pass
print("locked", flush=True)
time.sleep(300)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def clone(home: Path) -> Path:
    """Return a clone of an ordinary user, whose installer uses the stub as its Python."""
    made = home / "clone"
    for name in COPIED:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, made / name)
    (made / "requirements.txt").touch()
    (made / "fabric").mkdir()
    (home / "log").touch()
    (home / "log").chmod(0o666)
    stub = home / "python"
    stub.write_text(LOGGED.format(log=home / "log") + PYTHON.format())
    stub.chmod(0o755)
    script = made / "setup/install.sh"
    script.write_text(script.read_text().replace("python=/usr/bin/python3", f"python={stub}"))
    subprocess.run(["chown", "-R", f"{UID}:{UID}", str(made)], check=True)
    return made


def install(
    clone: Path, *arguments: str, uid: int = 0, path: str = os.environ["PATH"]
) -> subprocess.CompletedProcess[str]:
    prefix = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"] if uid else []
    return subprocess.run(
        [*prefix, str(clone / "setup/install.sh"), *arguments],
        cwd="/", env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("what", ["--simulator", "--docs"])
def test_root_makes_nothing_in_the_clone_of_a_user(home: Path, clone: Path, what: str) -> None:
    done = install(clone, what)
    assert done.returncode == 0, done.stderr
    lines = [line.split(maxsplit=3) for line in (home / "log").read_text().splitlines()]
    assert any("venv" in line[3] for line in lines)
    assert {tuple(line[:3]) for line in lines} == {(str(UID), str(UID), "/nonexistent")}
    assert {path.lstat().st_uid for path in clone.rglob("*")} == {UID}


def test_l11_a_reader_of_the_clone_blocks_nobody(clone: Path) -> None:
    """L11: mallory locks each file and folder of the clone that she can open."""
    assert install(clone, "--simulator", uid=UID).returncode == 0
    mallory = ["setpriv", "--reuid", str(MALLORY), "--regid", str(MALLORY), "--clear-groups"]
    argv = [*mallory, "/usr/bin/python3", "-c", LOCKER]
    (clone / "requirements.txt").write_text("# another version: there is something to do\n")
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write("\0".join(map(str, [clone, *clone.rglob("*")])))
        process.stdin.close()
        assert process.stdout.readline() == "locked\n"
        began_s = time.monotonic()
        done = install(clone, "--simulator")
        took_s = time.monotonic() - began_s
        process.kill()
    assert done.returncode == 0, done.stderr
    assert "another setup/install.sh" not in done.stderr
    assert took_s < 30


def test_l11_others_need_no_lock_where_all_is_done_and_are_refused_where_not(clone: Path) -> None:
    assert install(clone, "--simulator", uid=UID).returncode == 0
    assert (clone / ".setup-lock").stat().st_mode & 0o777 == 0o600
    assert install(clone, "--simulator", uid=MALLORY).returncode == 0
    (clone / "requirements.txt").write_text("# another version\n")
    refused = install(clone, "--simulator", uid=MALLORY)
    assert refused.returncode == 3
    assert "run setup/install.sh as that user, or: sudo setup/install.sh" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize("what", ["--simulator", "--docs", "--ims"])
def test_l12_root_runs_no_program_of_the_callers_path(home: Path, clone: Path, what: str) -> None:
    """L12: a folder of mallory's comes first in PATH, with each program that the installer uses."""
    folder = home / "bin"
    folder.mkdir()
    names = (
        "bash cat chmod cut date dirname dpkg-query env find flock getent git grep id ln mktemp mv rm sed "
    )
    for name in (names + "setpriv sha256sum sleep sort stat tail tr umask xargs apt-get clang").split():
        (folder / name).write_text(LOGGED.format(log=home / "stolen").replace("$(id -G)", ""))
        (folder / name).chmod(0o755)
    done = install(clone, what, path=f"{folder}:{os.environ['PATH']}")
    assert not (home / "stolen").exists(), (home / "stolen").read_text()
    assert done.returncode == 0 or what == "--ims", done.stderr


def test_what_root_made_in_an_earlier_version_is_named_with_the_command(clone: Path) -> None:
    (clone / ".venv").mkdir()
    done = install(clone, "--simulator")
    assert done.returncode == 3
    words = f"setup: an earlier setup/install.sh made files of another user: run  sudo rm -rf {clone}/.venv\n"
    assert done.stderr == words
    shutil.rmtree(clone / ".venv")
    assert install(clone, "--simulator").returncode == 0
