"""Charts of a user who cannot write to a home: drawn, and nothing stays in the temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
RUN = ("run", "cs244-one-to-one", "--engine", "max-min", "--k", "4", "--subflows", "1,2")


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_nothing_stays_where_the_user_cannot_write(tmp_path: Path, variable: str) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    kept = {name: text for name, text in os.environ.items() if name != "MPLCONFIGDIR"}
    done = subprocess.run(
        [sys.executable, "-m", "refabric.command", *RUN, "--results", str(tmp_path / "results")],
        capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
        env={**kept, variable: "/dev/null/none", "TMPDIR": str(temporary)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "results").rglob("charts/*.png"))) >= 2
    assert list(temporary.iterdir()) == []
