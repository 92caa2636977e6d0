"""An sdist builds a wheel that installs in a fresh environment, runs the simulator and leaks no names."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import types
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from common.version import VERSION
from refabric import _private

pytestmark = pytest.mark.builds

ROOT = Path(__file__).resolve().parents[2]
BUILD_S = 1800.0
QUICK = ("--engine", "simulator", "--k", "4", "--subflows", "1", "--seconds", "1", "--warmup", "0.2")


def run(argv: Sequence[object], cwd: Path, deadline_s: float = 300.0) -> str:
    done = subprocess.run(
        list(map(str, argv)), cwd=cwd, capture_output=True, text=True, timeout=deadline_s, check=False
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from an sdist by the tools here, without optimisation and debug symbols."""
    folder = tmp_path_factory.mktemp("wheel")
    program = f"from scikit_build_core import build; build.build_sdist({str(folder)!r})"
    run([sys.executable, "-c", program], ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    offline = ["--no-build-isolation", "--no-deps", "--no-index", "--no-cache-dir"]
    offline += [
        f"--config-settings=cmake.{each}" for each in ("build-type=Debug", "define.CMAKE_CXX_FLAGS_DEBUG=-O0")
    ]
    argv = [sys.executable, "-m", "pip", "wheel", *offline, "-w", folder, sdist]
    run(argv, folder, BUILD_S)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh environment with the wheel, and with this environment's libraries behind it.

    A folder named in a .pth file has its own .pth files ignored, so the editable install is not seen.
    """
    fresh = tmp_path_factory.mktemp("fresh") / "env"
    run([sys.executable, "-m", "venv", "--without-pip", fresh], fresh.parent)
    python = fresh / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel]
    run(pip, fresh.parent)
    (site,) = fresh.glob("lib/python3*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return fresh


def test_a_wheel_has_one_name_at_the_top(wheel: Path) -> None:
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert names == {"refabric", f"refabric-{VERSION}.dist-info"}


def test_it_has_the_licence_and_no_sources_of_the_core(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert f"refabric-{VERSION}.dist-info/licenses/LICENSE" in names
    assert [name for name in names if name.endswith((".cpp", ".hpp"))] == []


def test_the_command_runs_the_simulator_beside_modules_of_the_same_names(
    environment: Path, tmp_path: Path
) -> None:
    for name in ("common", "model", "setup"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')\n")
    refabric = environment / "bin" / "refabric"
    assert run([refabric, "--version"], tmp_path) == f"refabric, version {VERSION}\n"
    run([refabric, "run", "cs244-one-to-one", *QUICK], tmp_path)
    assert (tmp_path / "results/cs244-one-to-one/report.html").is_file()
    run([refabric, "run", "validation-wait", "--profile", "smoke"], tmp_path)


def test_python_imports_it_and_its_workers_do_too(environment: Path, tmp_path: Path) -> None:
    program = (
        "import refabric; r = refabric.run('cs244-one-to-one', engine='simulator', k=4, subflows=[1, 2], "
        "seconds=1, warmup=0.2, quiet=True); print(len(r), refabric.__file__)"
    )
    count, where = run([environment / "bin" / "python", "-c", program], tmp_path).split()
    assert count == "3"
    assert where.startswith(str(environment))


def test_a_module_of_the_same_name_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wellknown").mkdir()
    monkeypatch.setattr(sys, "path", list(sys.path))
    _private.make_importable(tmp_path)
    assert sys.path[0] == str(tmp_path)
    users = types.ModuleType("wellknown")
    users.__file__ = "/home/user/wellknown.py"
    monkeypatch.setitem(sys.modules, "wellknown", users)
    with pytest.raises(ImportError, match=r"wellknown is imported already \(/home/user/wellknown.py\)"):
        _private.make_importable(tmp_path)


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [VERSION]
    assert f"\n## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()
