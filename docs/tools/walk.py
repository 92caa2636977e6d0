"""List the files that one run enters, in order: a small simulated run under Python's profiler hook.

    python docs/tools/walk.py

Prints one file per line, relative to the root. A file counts when one of its functions runs; importing it
does not count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

RUN = (
    "run", "cs244-one-to-one", "--engine", "simulator", "--k", "4", "--subflows", "1,2", "--seconds", "2",
    "--warmup", "1", "--json", "--results",
)  # fmt: skip
DEADLINE_S = 300.0
_OPTIMIZED = 1
"""inspect.CO_OPTIMIZED: set for functions, not for the bodies of modules and classes."""


def files_entered() -> list[str]:
    """Return the files that the run enters, in order; the run has a process of its own."""
    command = [sys.executable, str(Path(__file__).resolve())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True, cwd=ROOT)
    return done.stdout.splitlines()


def _trace(results: str) -> list[str]:
    """Run it in this process, on one CPU, so that points do not go to worker processes."""
    from experiments.command import main  # noqa: PLC0415
    from harness.cli.commands import command  # noqa: PLC0415

    command(RUN[0])  # import the modules first: what they call at import is no step of the run
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    entered: dict[str, None] = {}
    seen: dict[int, CodeType] = {}

    def on_call(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call" and id(frame.f_code) not in seen:
            seen[id(frame.f_code)] = frame.f_code
            if name := _file(frame.f_code):
                entered.setdefault(name)

    sys.setprofile(on_call)
    try:
        main([*RUN, results], standalone_mode=False)
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
    return list(entered)


def _file(code: CodeType) -> str:
    """Return the source file of a function of the tree, relative to the root; empty for any other code."""
    path = code.co_filename
    if not code.co_flags & _OPTIMIZED or not path.startswith(f"{ROOT}/") or not path.endswith(".py"):
        return ""
    name = path.removeprefix(f"{ROOT}/")
    return "" if name.startswith((".", "docs/")) else name


if __name__ == "__main__":
    stdout = os.dup(1)
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder:
        found = _trace(folder)
    os.write(stdout, "".join(f"{name}\n" for name in found).encode())
