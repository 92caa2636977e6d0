"""run_tests.sh under sudo: nothing in the clone becomes root's."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.emulation

ROOT = Path(__file__).resolve().parents[2]
OWNER = 12345
STUB = """#!/bin/sh
echo "$(id -u) $*" >> "{log}"
mkdir -p cache && touch "cache/$(id -u)"
"""


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


@pytest.fixture
def shared() -> Iterator[Path]:
    """Yield a folder that every user can enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


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
    shutil.copy(ROOT / "run_tests.sh", clone)
    log.touch()
    log.chmod(0o666)
    subprocess.run(["chown", "-R", f"{OWNER}:{OWNER}", str(clone)], check=True)
    subprocess.run([clone / "run_tests.sh"], check=True, timeout=60)
    lines = log.read_text().splitlines()
    assert [line.split()[0] for line in lines] == [str(OWNER)] * 5 + ["0"]
    assert lines[-1].endswith("-B -m pytest -p no:cacheprovider -m emulation")
    assert owners(clone / "cache") == {OWNER, 0}, "the stub itself writes what pytest does not"
    assert all("-m emulation" not in line for line in lines[:-1])
