"""What the page on programs of one's own promises of the prompt, with its own commands, in both engines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engines.linux.kernel.store import current

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/guide/how-to.md"
NEEDS_KERNEL = pytest.mark.skipif(current() is None, reason="no kernel for guests: refabric kernel build")
pytestmark = pytest.mark.emulation
SECONDS, CUT_AFTER_S = 12, 3


def commands() -> list[str]:
    """Return the page's commands, with a shorter transfer and pauses of a reader."""
    section = PAGE.read_text().partition("## Run a program of mine on the hosts")[2]
    found = re.findall(r"^mininet> (.*)$", section.partition("```\n\n")[0], re.MULTILINE)
    cut = found.index("link p0a0 c0 down")
    paused = [*found[:cut], f"sh sleep {CUT_AFTER_S}", *found[cut:]]
    typed = [command.replace("-t 30", f"-t {SECONDS}") for command in paused]
    return [each for command in typed for each in (command, *(["sh sleep 1"] if command[-1] == "&" else []))]


@pytest.mark.machine
@pytest.mark.parametrize("engine", ["mininet", pytest.param("linux", marks=NEEDS_KERNEL)])
def test_subflows_take_over_from_those_on_a_link_that_is_cut(engine: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments.command", "shell", "--engine", engine, "ft,4"],
        input="\n".join(commands()),
        capture_output=True,
        text=True,
        timeout=400,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = done.stdout
    assert "3 received" in seen
    assert "Directory listing" in seen, "a host's name in a URL"
    sockets = seen.partition("Netid State")[2]
    assert sockets.count("tcp-ulp-mptcp") >= 8
    bursts = re.findall(r"(\d+\.\d+)-(\d+\.\d+) +sec +\S+ \S+ +(\S+) (\S*)bits/sec +\d+ +\S+ \S*Bytes", seen)
    late_mbps = [
        float(rate) * {"": 1e-6, "K": 1e-3, "M": 1.0}[unit]
        for start, end, rate, unit in bursts
        if float(start) >= CUT_AFTER_S + 3 and float(end) - float(start) > 0.9
    ]
    assert len(late_mbps) >= 3, seen[-3000:]
    assert sum(late_mbps) / len(late_mbps) > 5.0, "of 10 Mb/s"
