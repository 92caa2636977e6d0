"""List what a run could have left behind on this machine, before and after it, and compare the lists.

    python tests/support/leftovers.py snapshot > before
    ... whatever must leave nothing ...
    python tests/support/leftovers.py compare before     # exit code 1 and a diff when something is left

Only new things count, not those that have disappeared. A kernel log that was followed meanwhile
(`compare before LOG`) has the warnings that the kernel's own log no longer holds.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

Snapshot = Mapping[str, tuple[str, ...]]

_FOLDERS = ("/tmp", "/run", "/run/lock", "/dev/shm", "/var/tmp", "/sys/fs/bpf")
_KEPT_BY_TOOLS = re.compile(r"/tmp/pytest-of-[^/]+|/run/mount|/run/refabric")
"""pytest keeps its folder, and any mount(8) that a test starts makes libmount's. No run makes either."""
_SYSCTLS = ("fs", "kernel", "vm", "net/core", "net/ipv4", "net/mptcp")
_OWN_LIFE = re.compile(
    r"kernel/(random|tainted|ns_last_pid|pty/nr|perf_event_max_sample_rate|perf_cpu_time_max|hung_task_detect)|"
    r"fs/(dentry-state|file-nr|inode-|aio-nr|quota)|vm/stat_refresh|net/ipv4/(conf|neigh|route/flush)/?|"
    r"net/ipv4/tcp_(available|allowed)_congestion_control"
)
"""Sysctls that change by themselves, those of interfaces, the congestion controls, and the taint, which has
a kind of its own."""
_CONTROLS = "/proc/sys/net/ipv4/tcp_available_congestion_control"
"""Those of BPF links are among them, wherever they were made."""
_CONTROLS_KIND, _LINKS_KIND = "congestion controls", "BPF links"
_TAINT_KIND, _WARNINGS_KIND = "kernel taint", "kernel warnings"
_TAINT_WARN = 1 << 9
"""Documentation/admin-guide/tainted-kernels.rst: the kernel printed a warning."""
_IMPOSSIBLE_WINDOW = re.compile(r"WARNING: CPU: \d+ PID: (\d+) at \S*net/tcp\.h:\d+ tcp_\w+\+")
ANOTHER_RUN_S = 150.0
"""A live test, which may have its own congestion controls registered, is over by then."""
_PROGRAMS = re.compile(
    r"kamailio|sipp|redis-server|hub\.py|fake_agent|slow_receive|"
    r"refabric|engines\.|tests\.emulation|mininet:|iperf|sleep infinity|unshare|setpriv|mnexec|"
    r"ovs-vswitchd|ovsdb-server|controllers\."
)


def snapshot(kernel_log: Path | None = None) -> dict[str, tuple[str, ...]]:
    """Return the interfaces, namespaces, mounts, processes, files in temporary folders, abstract sockets,
    sysctls, congestion controls, BPF links and kernel warnings of this machine.

    Processes are those a run could start, by name; other programs come and go.
    """
    found = {
        "interfaces": _lines(["ip", "-o", "link"], r"^\d+: ([^:@]+)"),
        "class/net": sorted(entry.name for entry in Path("/sys/class/net").iterdir()),
        "namespaces": _namespaces(),
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "processes": _processes(),
        "files": _files(),
        "sockets": sorted(re.findall(r"@refabric\S*", Path("/proc/net/unix").read_text())),
        "sysctls": _sysctls(),
        _CONTROLS_KIND: Path(_CONTROLS).read_text().split(),
        _LINKS_KIND: _bpf_links(),
        _TAINT_KIND: [Path("/proc/sys/kernel/tainted").read_text().strip()],
        _WARNINGS_KIND: _kernel_warnings(kernel_log),
    }
    return {kind: tuple(values) for kind, values in found.items()}


def apart() -> None:
    """Hide the folders that sandboxes share with the machine, where tests beside this one write too. This
    process must have a mount namespace of its own."""
    for folder in ("/var/tmp", "/dev/shm"):
        if Path(folder).is_dir():
            argv = ["mount", "-t", "tmpfs", "-o", "mode=1777", "none", folder]
            subprocess.run(argv, check=True, timeout=30)


def compare(before: Snapshot, after: Snapshot) -> list[str]:
    """Return one line for each thing that is there after and was not before; empty if nothing is left."""
    excused = _excused(before, after)
    return [
        f"{kind}: {value}"
        for kind, values in after.items()
        for value in sorted(set(values) - set(before.get(kind, ())))
        if (kind, value) not in excused
    ]


def _excused(before: Snapshot, after: Snapshot) -> set[tuple[str, str]]:
    """Return the new warnings, and the taint, that are a property of the reference machine's kernel.

    It skips BPF programs while process 1 is current (docs/congestion.md). If that is `undo_cwnd`, it takes
    a number of its stack for the window and may warn about it, in a thread of process 1.
    """
    new = set(after.get(_WARNINGS_KIND, ())) - set(before.get(_WARNINGS_KIND, ()))
    known = {
        line
        for line in new
        if (match := _IMPOSSIBLE_WINDOW.search(line)) and Path("/proc/1/task", match[1]).exists()
    }
    excused = {(_WARNINGS_KIND, line) for line in known}
    if known == new != set():
        (was,) = before.get(_TAINT_KIND) or ("0",)
        excused.add((_TAINT_KIND, str(int(was) | _TAINT_WARN)))
    return excused


def wait_until_gone(before: Snapshot, seconds: float = 30.0, kernel_log: Path | None = None) -> list[str]:
    """Return what is left of a run once the kernel has had `seconds` to destroy its namespaces.

    The kernel has one list of congestion controls, and one of BPF links, for all namespaces, so one that is
    new may be another run's. Wait longer for these: that run removes its own, while nothing removes what was
    left behind.
    """
    began = time.monotonic()
    while left := compare(before, snapshot(kernel_log)):
        only_controls = all(line.startswith((f"{_CONTROLS_KIND}:", f"{_LINKS_KIND}:")) for line in left)
        if time.monotonic() - began > (max(seconds, ANOTHER_RUN_S) if only_controls else seconds):
            break
        time.sleep(0.05)
    return left


def _lines(argv: list[str], pattern: str) -> list[str]:
    text = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=30).stdout
    return sorted(match[1] for line in text.splitlines() if (match := re.match(pattern, line)))


def _namespaces() -> list[str]:
    """Return every namespace that has a process, from /proc, which shows the same as lsns(8)."""
    found = set()
    for pid in _pids():
        for kind in ("net", "mnt", "pid", "ipc", "uts"):
            try:
                found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
            except OSError:
                continue  # it has just ended, or is a kernel thread
    return sorted(found)


def _files() -> list[str]:
    folders = (Path(folder) for folder in _FOLDERS if Path(folder).is_dir())
    found = (str(path) for folder in folders for path in folder.iterdir())
    return sorted(path for path in found if not _KEPT_BY_TOOLS.fullmatch(path))


def _processes() -> list[str]:
    found = []
    for pid in _pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if pid != os.getpid() and _PROGRAMS.search(words):
            found.append(f"{pid} {words.strip()[:200]}")
    return sorted(found)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _sysctls() -> list[str]:
    found = []
    for folder, _, names in (each for top in _SYSCTLS for each in os.walk(f"/proc/sys/{top}")):
        for name in names:
            path = Path(folder, name)
            if not _OWN_LIFE.match(str(path.relative_to("/proc/sys"))):
                try:
                    found.append(f"{path.relative_to('/proc/sys')}={' '.join(path.read_text().split())}")
                except (OSError, UnicodeDecodeError):
                    continue  # it is written only, or has just gone
    return sorted(found)


def _bpf_links() -> list[str]:
    """Return the numbers of all BPF links, which the kernel counts up; none without libbpf or privilege."""
    try:
        libbpf = ctypes.CDLL("libbpf.so.1")
    except OSError:
        return []
    found, number = [], ctypes.c_uint32(0)
    while libbpf.bpf_link_get_next_id(number, ctypes.byref(number)) == 0:
        found.append(str(number.value))
    return found


def _kernel_warnings(followed: Path | None) -> list[str]:
    """Return the lines of warnings, bugs and oopses in the kernel's log and in the one that was followed."""
    dmesg = subprocess.run(["dmesg"], check=False, capture_output=True, timeout=30)
    text = dmesg.stdout.decode(errors="replace") + (followed.read_text(errors="replace") if followed else "")
    return sorted({line for line in text.splitlines() if re.search(r"\b(WARNING|BUG|Oops)\b: ", line)})


def main(argv: list[str]) -> int:
    if argv == ["snapshot"]:
        json.dump(snapshot(), sys.stdout, indent=1)
        return 0
    if len(argv) in (2, 3) and argv[0] == "compare":
        kernel_log = Path(argv[2]) if len(argv) == 3 else None
        left = wait_until_gone(json.loads(Path(argv[1]).read_text()), kernel_log=kernel_log)
        print("\n".join(f"left behind: {line}" for line in left) or "nothing left behind")
        return 1 if left else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
