"""Root in the folder of an ordinary user: all that it leaves there belongs to the user."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from common import files
from common.errors import StoreError
from harness.metrics import columns
from harness.results.store import Store, load
from tests.support.stored_points import EXPERIMENT, put, result_of, spec_of

pytestmark = pytest.mark.emulation

ROOT = Path(__file__).resolve().parents[2]
OWNER = 12345
OTHER = 23456
STUB = """#!/bin/sh
echo "$(id -u) $*" >> "{log}"
mkdir -p cache && touch "cache/$(id -u)"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder that belongs to OWNER, while OTHER has called sudo."""
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    monkeypatch.setenv("SUDO_GID", str(OTHER))
    folder = tmp_path / "home"
    folder.mkdir()
    os.chown(folder, OWNER, OWNER)
    yield folder
    shutil.rmtree(folder)


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def test_results_go_to_the_owner_of_the_folder_not_to_the_caller_of_sudo(home: Path) -> None:
    store = Store.open(home / "results", EXPERIMENT)
    for goodput in (1.0, 2.0):
        columns.write(store, [put(store, spec_of(), result_of([goodput]))])
    assert owners(home) == {OWNER}
    assert len(load(store.directory)) == 1


def test_until_it_is_published_only_root_can_enter(home: Path) -> None:
    store = Store.open(home / "results", EXPERIMENT)
    with store.writing(spec_of()) as writer:
        found = writer.aside.path.stat()
        assert (found.st_uid, found.st_mode & 0o777) == (0, 0o700)


def test_in_a_folder_of_root_the_caller_of_sudo_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    monkeypatch.setenv("SUDO_GID", str(OTHER))
    files.make_folder(tmp_path / "new" / "results")
    assert owners(tmp_path / "new") == {OTHER}


@pytest.mark.parametrize("inner", ["charts", "charts/deeper", "charts/a/b"])
def test_root_follows_no_link_of_another_user_to_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    etc, results = tmp_path / "etc", tmp_path / "results"
    etc.mkdir()
    results.mkdir()
    (results / "charts").symlink_to(etc)
    os.chown(results / "charts", OWNER, OWNER, follow_symlinks=False)
    words = f"belongs to user {OWNER}, and root does not follow it"
    monkeypatch.delenv("SUDO_UID", raising=False)
    with pytest.raises(OSError, match=words):
        files.make_folder(results / inner)
    with pytest.raises(StoreError, match=words):
        files.replace_file(results / "charts" / "throughput.svg", b"<svg>")
    assert list(etc.iterdir()) == []
    monkeypatch.setenv("SUDO_UID", str(OWNER))
    monkeypatch.setenv("SUDO_GID", str(OWNER))
    files.make_folder(results / inner)
    files.replace_file(results / inner / "throughput.svg", b"<svg>")
    assert len(list(etc.rglob("throughput.svg"))) == 1


@pytest.fixture
def shared() -> Iterator[Path]:
    """Yield a folder that every user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_the_whole_suite_under_sudo_leaves_no_files_of_root(shared: Path) -> None:
    """Run run_tests.sh itself, with stubs in place of its tools; they log the user they run as."""
    clone, log = shared / "clone", shared / "log"
    for tool in ("setup/install.sh", ".venv/bin/ruff", ".venv/bin/mypy", ".venv/bin/python"):
        (clone / tool).parent.mkdir(parents=True, exist_ok=True)
        (clone / tool).write_text(STUB.format(log=log) if tool != "setup/install.sh" else "#!/bin/sh\n")
        (clone / tool).chmod(0o755)
    shutil.copy(ROOT / "run_tests.sh", clone)
    log.touch()
    log.chmod(0o666)
    subprocess.run(["chown", "-R", f"{OWNER}:{OWNER}", str(clone)], check=True)
    subprocess.run([clone / "run_tests.sh"], check=True, timeout=60)
    lines = log.read_text().splitlines()
    assert [line.split()[0] for line in lines] == [str(OWNER)] * 4 + ["0"]
    assert lines[-1].endswith("-B -m pytest -p no:cacheprovider -m emulation")
    assert owners(clone / "cache") == {OWNER, 0}, "the stub itself writes what pytest does not"
    assert all("-m emulation" not in line for line in lines[:-1])
