"""setup/install.sh in clones of their own: without a network, killed at random moments, two at a time.

    python tests/soak/installs.py [--kills 3] [--seed 1] [--before WORDS] [--owner UID] [--json]

Each kill is a SIGKILL to everything that the script has started, at a moment drawn uniformly over an
undisturbed installation's length; the same command then has to finish. Packages of the distribution must be
there already. Takes about four installations and one for each kill. `--before` is put before each command,
like `nice`. With `--owner` the clone belongs to this user, and root may make no file in it. Exit code 1 when
a repair failed, or root made files.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 1800.0
SCRIPT = ("setup/install.sh", "--simulator")


@dataclass
class Clone:
    """A copy of this checkout's committed state, and what is wrong with it so far."""

    folder: Path
    before: tuple[str, ...] = ()
    faults: list[str] = field(default_factory=list)

    @classmethod
    def made(cls, home: Path, name: str, before: Sequence[str], owner: int | None) -> Clone:
        folder = home / name
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True, timeout=120)
        if owner is not None:
            home.chmod(0o755)
            subprocess.run(["chown", "-R", f"{owner}:{owner}", str(folder)], check=True, timeout=120)
        return cls(folder, tuple(before))

    def start(self, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.before, *prefix, *SCRIPT],
            cwd=self.folder,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str], what: str, wanted: int = 0) -> str:
        """Wait for its end, note a wrong exit code, return its last line."""
        _, words = process.communicate(timeout=DEADLINE_S)
        lines = words.strip().splitlines()
        if process.returncode != wanted:
            self.faults.append(f"{what}: exit code {process.returncode}: {' / '.join(lines[-3:])}")
        return lines[-1] if lines else ""

    def works(self, what: str) -> None:
        """Note a fault unless the core can be imported and the program lists its experiments."""
        argv = [str(self.folder / ".venv/bin/refabric"), "list"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
        except OSError as error:
            self.faults.append(f"{what}: {error}")
            return
        if done.returncode:
            self.faults.append(f"{what}: refabric list: {done.stderr.strip()[-300:]}")

    def belongs_to(self, owner: int) -> None:
        """Note a fault for each top-level entry in which there is something of another user."""
        for entry in self.folder.iterdir():
            if any(path.lstat().st_uid != owner for path in (entry, *entry.rglob("*"))):
                self.faults.append(f"{entry.name}: not all of it belongs to user {owner}")

    def forget(self) -> None:
        shutil.rmtree(self.folder / ".venv", ignore_errors=True)


def kill_group(process: subprocess.Popen[str]) -> None:
    """SIGKILL the script and all it has started: they share its session."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


def offline(clone: Clone) -> dict[str, Any]:
    """Without a network the script must say so in its last line, with exit code 3, and repair later."""
    clone.forget()
    last = clone.finish(clone.start(("unshare", "--net")), "offline", wanted=3)
    if not last.endswith("connect this machine and run setup/install.sh again"):
        clone.faults.append(f"offline: its last line is {last!r}")
    clone.finish(clone.start(), "after being offline")
    clone.works("after being offline")
    return {"offline": last}


def killed(clone: Clone, moments_s: Sequence[float]) -> dict[str, Any]:
    """Kill the script at these moments, one after the other; then the same command must finish."""
    clone.forget()
    for at_s in moments_s:
        process = clone.start()
        try:
            process.communicate(timeout=at_s)
        except subprocess.TimeoutExpired:
            kill_group(process)
    clone.finish(clone.start(), f"after kills at {moments_s} s")
    clone.works(f"after kills at {moments_s} s")
    return {"killed_at_s": list(moments_s)}


def two_at_once(clone: Clone) -> dict[str, Any]:
    """Both must succeed; the second waits for the first."""
    clone.forget()
    first, second = clone.start(), clone.start()
    words = [clone.finish(process, "two at once") for process in (first, second)]
    clone.works("two at once")
    return {"two_at_once": words}


@click.command()
@click.option("--kills", default=3, show_default=True, type=click.IntRange(0))
@click.option("--seed", default=1, show_default=True)
@click.option("--before", default="", metavar="WORDS", help="Put WORDS before each installation.")
@click.option("--owner", type=click.IntRange(1), metavar="UID", help="Give the clone to this user.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(kills: int, seed: int, before: str, owner: int | None, as_json: bool) -> None:
    """Install again and again in temporary clones."""
    with tempfile.TemporaryDirectory(prefix="installs-") as home:
        clone = Clone.made(Path(home), "clone", before.split(), owner)
        began = time.monotonic()
        clone.finish(clone.start(), "undisturbed")
        length_s = time.monotonic() - began
        rng = random.Random(seed)
        found: dict[str, Any] = {"undisturbed_s": round(length_s, 1)}
        found |= offline(clone)
        for _ in range(kills):
            once = killed(clone, [round(rng.uniform(0.0, length_s), 1)])
            found.setdefault("killed_at_s", []).extend(once["killed_at_s"])
        found |= two_at_once(clone)
        if owner is not None:
            clone.belongs_to(owner)
        found["faults"] = clone.faults
    click.echo(json.dumps(found) if as_json else "\n".join(f"{name}: {found[name]}" for name in found))
    sys.exit(1 if clone.faults else 0)


if __name__ == "__main__":
    main()
