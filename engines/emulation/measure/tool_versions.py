"""Versions of the tools that an emulation uses."""

from __future__ import annotations

import shutil

from engines.provenance import output

_VERSIONS = {
    "iperf3": ["iperf3", "--version"],
    "mininet": ["mn", "--version"],
    "iproute2": ["ip", "-V"],
}


def tools() -> dict[str, str]:
    """Return the first line of each tool's version; `missing` if it is not installed."""
    return {name: _version(argv) for name, argv in _VERSIONS.items()}


def _version(argv: list[str]) -> str:
    if shutil.which(argv[0]) is None:
        return "missing"
    return (output(argv).splitlines() or ["unknown"])[0]
