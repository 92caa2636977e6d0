"""Programs that run in a guest of the engine `linux`, for tests/live/test_virtual_linux.py."""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
import uuid
from pathlib import Path

from engines.emulation.sandbox.inside import Inside

CHUNK = 64 << 20


def look(inside: Inside) -> int:
    """Report what the guest sees: its clocks, its random numbers, its devices, what it can write."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        port = client.getsockname()[1]
    inside.report(
        {
            "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "uuid": str(uuid.uuid4()),
            "bytes": secrets.token_hex(16),
            "draw": random.SystemRandom().random(),
            "port": port,
            "now": time.time(),
            "devices": [e.name for e in Path("/sys/class/net").iterdir() if (e / "device").exists()],
            "written": [folder for folder in inside.request if _can_write(Path(folder))],
        }
    )
    return 0


def _can_write(folder: Path) -> bool:
    try:
        (folder / "from-a-guest").write_text("x")
    except OSError:
        return False
    return True


def mount_the_machine(inside: Inside) -> int:
    """Try to write the folder of the request through a mount of its own, as root of the guest."""
    target = Path("/run/machine")
    target.mkdir()
    done = os.spawnlp(
        os.P_WAIT, "mount", "mount", "-t", "hostfs", "-o", str(inside.request), "none", str(target)
    )
    inside.report({"mounted": done == 0, "written": _can_write(target)})
    return 0


def panic(inside: Inside) -> int:
    """Crash the guest's process 1, and with it its kernel: overwrite its program, which it then runs on."""
    del inside
    maps = [line.split() for line in Path("/proc/1/maps").read_text().splitlines()]
    with Path("/proc/1/mem").open("r+b", buffering=0) as memory:
        for span, rights, *_ in maps:
            first, last = (int(end, 16) for end in span.split("-"))
            if rights == "r-xp" and first < 1 << 47:
                memory.seek(first)
                memory.write(b"\xcc" * (last - first))
    return 0


def spin(inside: Inside) -> int:
    """Compute forever, which takes no virtual time."""
    inside.report({"spinning": True})
    while True:
        pass


def sleep(inside: Inside) -> int:
    """Sleep for as long as the request says, in virtual time."""
    time.sleep(inside.request)
    inside.report({"slept": inside.request})
    return 0


def eat(inside: Inside) -> int:
    """Use up all memory."""
    del inside
    held = []
    while True:
        held.append(os.urandom(1) * CHUNK)
