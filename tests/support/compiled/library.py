"""C and C++ of the repository, compiled for this machine and loaded."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

COMPILERS = {".c": ("cc", "gcc", "clang"), ".cpp": ("g++",)}


def loaded(text: str, ending: str, *flags: str, sources: Sequence[Path] = ()) -> ctypes.CDLL:
    """Compile a source text, `.c` or `.cpp`, and further sources to a library, and load it.

    Skips the test where there is no compiler.
    """
    compiler = next(filter(None, map(shutil.which, COMPILERS[ending])), None)
    if compiler is None:
        pytest.skip(f"no compiler: sudo apt-get install {COMPILERS[ending][-1]}")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "wrapper").with_suffix(ending), Path(folder, "wrapper.so")
        source.write_text(text)
        always = ("-shared", "-fPIC", "-Wall", "-Wextra", "-o", str(target))
        argv = (compiler, *always, *flags, str(source), *map(str, sources))
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return ctypes.CDLL(str(target))
