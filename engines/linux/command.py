"""How a guest is started: its command line, and the script that is its process 1. Pure.

The command line has no path in it, because the guest's kernel mixes it into its random numbers: hostfs asks
the machine for /proc/self/cwd, which is the point's folder.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("/run/point")
"""Where the guest has the point's own folder, the only one of the machine that it can write."""
INIT, REQUEST, REPORTS, COMMANDS = "init", "request.json", "reports", "commands"
NO_BYTECODE = "/run/no-bytecode"
"""No such folder: programs compile what they import. With the machine's byte code a point had other bytes
than without, and whether there is any depends on what ran there before."""
LIFE_FD, REQUEST_FD, REPORT_FD = 3, 4, 5
START_NS = 1_700_000_000_000_000_000
"""The guest's time of day at boot, the same in every run."""

_SCRIPT = """\
#!/bin/sh
# Process 1 of the guest: mounts, then the program, and what it ended with.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8
export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0 SETUPTOOLS_USE_DISTUTILS=stdlib LIBMOUNT_FORCE_MOUNT2=always
export PYTHONPYCACHEPREFIX={no_bytecode}
set -e
ulimit -Hn 1048576  # fs.nr_open; the kernel starts process 1 with 4096
mount -t tmpfs tmpfs /run
mkdir {folder}
mount -t hostfs -o sync,/proc/self/cwd none {folder}
exec >{folder}/output 2>&1
mount -t proc proc /proc
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
echo {tcp_mem} >/proc/sys/net/ipv4/tcp_mem
mkfifo /run/life
exec 3<>/run/life 4<{folder}/{request} 5>>{folder}/{reports}
set +e
{program}
echo "{{\\"halted\\": $?}}" >&5
read -r _ <&3
"""
"""Process 1 must not end: it waits for the outer process, which ends the guest."""


def command(
    kernel: Path, memory_mb: int, seed: int, console: str = "null,fd:2", loglevel: int = 4
) -> list[str]:
    """Return the guest's command line. `seed` (32 bits) decides all random numbers of its kernel.

    `console` are input and output of /dev/tty0, e.g. "fd:0,fd:7".
    """
    return [
        str(kernel),
        f"mem={memory_mb}M",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init=/proc/self/cwd/{INIT}"),
        *("time-travel=inf-cpu", f"time-travel-start={START_NS}", f"rng_seed={seed}"),
        *("con=null", f"con0={console}", "con1=null", "ssl=null"),
        *("uml_dir=.", "umid=guest", "panic=-1", f"loglevel={loglevel}"),
    ]


@dataclass(frozen=True)
class Terminal:
    """The stdin of a guest's program: a terminal of this size, or the file COMMANDS. Its output goes to the
    terminal in both cases."""

    live: bool
    rows: int = 24
    columns: int = 80

    def around(self, program: str) -> str:
        """Return the shell text that runs `program` with this terminal.

        It first waits for a second of the guest's time: before that, ping treats every packet as its first
        and does not wait between them.
        """
        if not self.live:
            return f"sleep 1\nstty -opost </dev/tty0\n{program} <{FOLDER}/{COMMANDS} >/dev/tty0 2>&1"
        size = f"sleep 1\nstty rows {self.rows} columns {self.columns} </dev/tty0"
        return f"{size}\nTERM=linux setsid --ctty --wait {program} </dev/tty0 >/dev/tty0 2>&1"


def script(program: Sequence[str], memory_mb: int, terminal: Terminal | None = None) -> str:
    """Return the text of the guest's process 1, which runs `program`, with a terminal or without."""
    line = shlex.join(program)
    return _SCRIPT.format(
        folder=FOLDER,
        no_bytecode=NO_BYTECODE,
        request=REQUEST,
        reports=REPORTS,
        program=terminal.around(line) if terminal else line,
        tcp_mem=shlex.quote(tcp_mem(memory_mb)),
    )


def tcp_mem(memory_mb: int) -> str:
    """Return the kernel's limits on the memory of all TCP sockets together, in pages: half of the guest's.

    By default they are 9 % of it (net/ipv4/tcp.c, tcp_init_mem), shared by all hosts: with 4 GB, 25 of 128
    flows with 8 subflows stood still.
    """
    pages = memory_mb * 256
    return f"{3 * pages // 8} {pages // 2} {pages // 2}"
