"""Landlock: what a restricted process can still write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engines.linux import landlock
from engines.linux.launch import ROOT

_PROGRAM = """
import os, sys
sys.path.append(sys.argv[1])
from pathlib import Path
from engines.linux.landlock import write_only_below
terminal = os.ttyname(os.openpty()[1])
assert write_only_below([sys.argv[2]])
Path(sys.argv[2], "mine").write_text("x")
for path in (*(Path(sys.argv[3], name) for name in ("theirs", "new")), Path(terminal)):
    try:
        path.write_text("y")
    except PermissionError:
        continue
    sys.exit(f"{path} was written")
"""


@pytest.mark.skipif(not landlock.supported(), reason="this kernel has no Landlock")
def test_only_the_given_folder_can_be_written(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "a", tmp_path / "b"
    for folder in (mine, theirs):
        folder.mkdir()
    (theirs / "theirs").write_text("before")
    argv = [sys.executable, "-c", _PROGRAM, str(ROOT), str(mine), str(theirs)]
    done = subprocess.run(argv, check=False, timeout=30, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (mine / "mine").read_text() == "x"
    assert (theirs / "theirs").read_text() == "before"
    assert not (theirs / "new").exists()
