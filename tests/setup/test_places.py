"""The files for containers and cloud machines, as far as they can be checked without starting one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


def test_the_dev_container_builds_from_the_dockerfile() -> None:
    folder = ROOT / ".devcontainer"
    settings = json.loads((folder / "devcontainer.json").read_text())
    assert (folder / settings["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert f"USER {settings['remoteUser']}\n" in (DEPLOY / "Dockerfile").read_text()


def test_what_the_files_call_exists() -> None:
    for path in [*DEPLOY.iterdir(), ROOT / ".devcontainer" / "devcontainer.json"]:
        called = re.findall(r"(?:/opt/refabric/|\./|\b)(setup/install\.sh|run_mptcp\.sh)", path.read_text())
        assert called, path.name
        assert all((ROOT / name).exists() for name in called)
        assert "REPOSITORY" in path.read_text() or path.name != "cloud-init.yaml"


def test_cloud_init_has_its_first_line() -> None:
    assert (DEPLOY / "cloud-init.yaml").read_text().startswith("#cloud-config\n")


@pytest.mark.parametrize(
    "check",
    [
        ("hadolint", "--failure-threshold", "warning", "deploy/Dockerfile"),
        ("ruby", "-c", "deploy/Vagrantfile"),
        ("cloud-init", "schema", "--config-file", "deploy/cloud-init.yaml"),
        ("bash", "-n", "tests/bare/run.sh"),
    ],
)
def test_their_own_checkers_accept_them(check: tuple[str, ...]) -> None:
    if shutil.which(check[0]) is None:
        pytest.skip(f"{check[0]} is not installed")
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
