"""The built kernel of the engine linux: randomness, virtual time, congestion controls, floating point.

Needs no root, but a built kernel (`refabric kernel build`).
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from engines.linux.guest import START_NS
from engines.linux.kernel import store
from engines.linux.kernel.source import congestion_controls
from setup.kernel_build import boot

pytestmark = pytest.mark.skipif(store.current() is None, reason="no kernel is built: refabric kernel build")

PYTHON = """#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
ip link set lo up
exec python3 -I -S -c '{}'
"""
RANDOM = """
import socket
print("UUID", open("/proc/sys/kernel/random/uuid").read().strip())
print("HASH", hash("a string"))
wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
wire.bind(("lo", 0x0800))
server = socket.create_server(("127.0.0.1", 5001))
for _ in range(3):
    client = socket.create_connection(("127.0.0.1", 5001))
    frame = wire.recv(2048)
    while frame[33] != 2:
        frame = wire.recv(2048)
    print("PORT", client.getsockname()[1], "ISN", int.from_bytes(frame[24:28], "big"))
"""
CLOCK = """
import time
time.sleep(0.5)
first = [time.clock_gettime_ns(time.CLOCK_MONOTONIC) for _ in range(1000)]
real = time.time_ns()
boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
mono = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
print("STEPS", sorted({b - a for a, b in zip(first, first[1:])}))
print("REAL", real, "BOOT", boot, "MONO", mono)
begun = time.monotonic_ns()
while time.monotonic_ns() < begun + 20_000_000:
    pass
time.sleep(0.1)
print("SLEPT", time.monotonic_ns() - begun)
"""
FLOATS = """
import os, signal, threading
def sums(count, by):
    total = 0.0
    for i in range(count):
        total += by
        if i % 50 == 0:
            os.getppid()
    return total
signal.signal(signal.SIGALRM, lambda *_: seen.append(sums(100, 0.5)))
seen = []
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
results = []
work = lambda by: results.append((by, sums(20000, by)))
threads = [threading.Thread(target=work, args=(by,)) for by in (0.25, 0.125, 1.5)]
for thread in threads: thread.start()
pid = os.fork()
if pid == 0:
    os._exit(0 if sums(5000, 0.75) == 3750.0 else 1)
own = sums(20000, 0.0625)
for thread in threads: thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)
print("FLOATS", sorted(results), own, os.waitpid(pid, 0)[1], set(seen) <= {50.0})
"""


def _said(script: str, folder: Path, seed: int = 1) -> str:
    kernel = store.current()
    assert kernel is not None
    folder.mkdir(exist_ok=True)
    return boot(kernel.path, PYTHON.format(script.replace("'", '"')), folder, seed)


def _random(folder: Path, seed: int) -> list[str]:
    found = re.findall(r"^(?:UUID|HASH|PORT) .*", _said(RANDOM, folder, seed), re.MULTILINE)
    assert len(found) == 5, found
    return [line.strip() for line in found]


def test_randomness_comes_from_the_seed_alone(tmp_path: Path) -> None:
    """Random numbers, hash secrets, ports, initial sequence numbers; not the folder's name."""
    first, again, other = (
        _random(tmp_path / name, seed) for name, seed in (("a", 7), ("another", 7), ("b", 8))
    )
    assert first == again
    assert all(one != two for one, two in zip(first, other, strict=True))
    isns = {line.rpartition(" ")[2] for line in first[2:]}
    assert len(isns) == 3


def test_the_clock_is_virtual_and_steady(tmp_path: Path) -> None:
    said = _said(CLOCK, tmp_path)
    assert "STEPS [256]" in said
    real, boot_ns, mono = (int(text) for text in re.findall(r"(?:REAL|BOOT|MONO) (\d+)", said))
    assert 0 <= mono - boot_ns < 1_000_000
    assert 0 <= mono - (real - START_NS) < 1_000_000
    slept = re.search(r"SLEPT (\d+)", said)
    assert slept is not None
    assert 120_000_000 <= int(slept[1]) < 121_000_000


def test_registers_survive_signals_threads_and_forks(tmp_path: Path) -> None:
    said = _said(FLOATS, tmp_path)
    assert "FLOATS [(0.125, 2500.0), (0.25, 5000.0), (1.5, 30000.0)] 1250.0 0 True" in said


def test_the_guest_has_our_congestion_controls(tmp_path: Path) -> None:
    said = _said('print("CC", open("/proc/refabric/congestion").read().split())', tmp_path)
    kernel = store.current()
    assert kernel is not None
    assert set(congestion_controls()) <= set(kernel.congestion_controls)
    ours = [name for name in congestion_controls() if name.startswith("rf_")]
    assert ours and all(f"'{name}', '0', '0'" in said for name in ours)


def test_nothing_is_left(tmp_path: Path) -> None:
    before = {path.name for path in Path("/dev/shm").iterdir()}
    _said("pass", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} <= {"init"} | {
        path.name for path in tmp_path.iterdir() if path.is_dir()
    }
    assert {path.name for path in Path("/dev/shm").iterdir()} <= before
    shutil.rmtree(tmp_path)
