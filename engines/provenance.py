"""Provenance of a result: machine and revision, read before traffic starts."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from common import processes

ROOT = Path(__file__).resolve().parents[1]
_TIMEOUT_S = 10


def machine() -> dict[str, Any]:
    """Return kernel, CPU, memory and distribution of this machine."""
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": _os_release().get("PRETTY_NAME", "unknown"),
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mb": int((_field("/proc/meminfo", "MemTotal") or "0").split()[0]) // 1024,
        "python": platform.python_version(),
    }


@functools.cache
def origin() -> Mapping[str, Any]:
    """Return the machine and the revision of this process, read once; they do not influence results."""
    return MappingProxyType({**machine(), "revision": revision()})


def free_memory_mb() -> float:
    """Return MemAvailable of /proc/meminfo, in MB."""
    return int((_field("/proc/meminfo", "MemAvailable") or "0").split()[0]) / 1024


def revision(root: Path = ROOT) -> str:
    """Return the git revision of a checkout, with `+` where files differ; `unknown` outside a checkout."""
    if shutil.which("git", path=processes.environment().get("PATH")) is None:
        return "unknown"
    # The checkout may be another user's, whose code runs here anyway; its index is only read.
    git = ("git", "--no-optional-locks", "-c", f"safe.directory={root}", "-C", str(root))
    head = output([*git, "rev-parse", "--short=12", "HEAD"])
    if not head:
        return "unknown"
    return head + ("+" if output([*git, "status", "--porcelain", "--untracked-files=no"]) else "")


def output(argv: Sequence[str]) -> str:
    """Return what a program prints; empty when it fails or hangs."""
    env = processes.environment()
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=env)
    except subprocess.TimeoutExpired:
        return ""  # A missing version number must not make a point fail.
    return (done.stdout or done.stderr).strip() if done.returncode == 0 else ""


def _field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _os_release() -> dict[str, str]:
    path = Path("/etc/os-release")
    if not path.exists():
        return {}
    pairs = (line.partition("=") for line in path.read_text().splitlines())
    return {key: value.strip('"') for key, _, value in pairs}
