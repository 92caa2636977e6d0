"""One iperf3 transfer between two Mininet hosts, for the shell command `iperf`."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from typing import Any

from common.errors import CommandError, DeadlineError
from engines.emulation.hosts.nodes import FabricHost

START_S = 5.0
END_S = 15.0
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def iperf_pair(
    client: FabricHost, server: FabricHost, seconds: int, port: int, udp_rate: str = ""
) -> tuple[float, float]:
    """Return bit/s sent by the client and received by the server; UDP at `udp_rate` ("10M") if given.

    Raises CommandError with iperf3's output, DeadlineError if it does not start or end in time.
    """
    serving = server.popen(["iperf3", "-s", "-1", "--forceflush", "-p", str(port)], stderr=subprocess.STDOUT)
    try:
        _await_listening(serving)
        argv = ["iperf3", "-J", "-c", str(server.IP()), "-p", str(port), "-t", str(seconds)]
        argv += ["-u", "-b", udp_rate] if udp_rate else []
        return _transfer(client, argv, seconds + END_S)
    finally:
        serving.kill()
        serving.communicate(timeout=END_S)


def format_rate(bps: float, unit: str | None = None) -> str:
    """Return `9.41 Mbits/sec`; `unit` is k, m or g, or None for a unit by size."""
    prefix = unit.lower() if unit else ("g" if bps >= 1e9 else "m" if bps >= 1e6 else "k")
    return (
        f"{bps / _UNITS[prefix]:.3g} {prefix.replace('k', 'K').replace('m', 'M').replace('g', 'G')}bits/sec"
    )


def _await_listening(serving: subprocess.Popen[Any]) -> None:
    assert serving.stdout is not None
    deadline = time.monotonic() + START_S
    seen = b""
    while b"listening" not in seen:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([serving.stdout], [], [], left_s)[0]:
            raise DeadlineError(
                f"starting iperf3 -s: it did not listen within {START_S:g} s; output {seen.decode()!r}"
            )
        chunk = os.read(serving.stdout.fileno(), 4096)
        if not chunk:
            raise CommandError(f"iperf3 -s exited with {serving.wait(1)}: {seen.decode().strip()}")
        seen += chunk


def _transfer(client: FabricHost, argv: list[str], deadline_s: float) -> tuple[float, float]:
    running = client.popen(argv, stderr=subprocess.STDOUT)
    try:
        text, _ = running.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate(timeout=END_S)
        raise DeadlineError(
            f"{' '.join(argv)} did not end within {deadline_s:g} s; check whether a link is down"
        ) from None
    try:
        report = json.loads(text)
        sent = report["end"].get("sum_sent") or report["end"]["sum"]
        received = report["end"].get("sum_received") or report["end"]["sum"]
        return float(sent["bits_per_second"]), float(received["bits_per_second"])
    except (ValueError, KeyError) as error:
        words = text.decode(errors="replace").strip()[-300:]
        raise CommandError(f"{' '.join(argv)} (exit {running.returncode}): {words}") from error
