"""What this machine's kernel can do, found out by trying it: BPF programs and netem. Trying needs root.

If something fails, the result says why, and which command helps.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import os
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import HostUnfitError
from engines.emulation.congestion.libbpf import BpfObject, LibbpfError
from engines.emulation.congestion.ranks import HIDE_SACKS, STAMP, load
from engines.emulation.congestion.registration import compiled, last_lines
from engines.emulation.kernel import shaping
from engines.emulation.sandbox import client
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import reported_inside
from model.congestion import COUPLED_DEFAULT
from model.spec import RunSpec

LOOK_S = 60.0


@dataclass(frozen=True)
class MachineSupport:
    """What was found. `ranks` says why hosts cannot stamp ranks; empty if they can."""

    congestion: Support
    ranks: str
    netem: bool

    @classmethod
    def tried(cls) -> MachineSupport:
        """Try everything; needs root."""
        try:
            netem = shaping.has_netem()
        except HostUnfitError:  # no namespace can be made, which a run will say
            netem = False
        return cls(bpf_support(), ranks_unsupported(), netem)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MachineSupport:
        """The inverse of dataclasses.asdict."""
        return cls(Support(**data["congestion"]), str(data["ranks"]), bool(data["netem"]))


def inside(inside: Inside) -> int:
    """Report what this machine can do, as root's part of `found`."""
    inside.report(dataclasses.asdict(MachineSupport.tried()))
    return 0


@functools.cache
def found() -> MachineSupport:
    """Return what this machine can do, found once per process.

    Without root and without a helper only files and the kernel's version are looked at. Raises RefabricError.
    """
    if os.geteuid() == 0:
        return MachineSupport.tried()
    if not client.available():
        return MachineSupport(bpf_support(), "", True)
    return MachineSupport.from_json(reported_inside("look", None, LOOK_S))


def check_ranks(spec: RunSpec) -> None:
    """Raise HostUnfitError that says why this machine's hosts cannot run the point's programs."""
    if reason := found().ranks:
        raise HostUnfitError(
            f"--discipline {spec.link.discipline}, --cc {spec.transport.cc}: {reason}, or choose --engine "
            "simulator"
        )


BTF = Path("/sys/kernel/btf/vmlinux")
LOCKDOWN = Path("/sys/kernel/security/lockdown")
JIT = Path("/proc/sys/net/core/bpf_jit_enable")
OLDEST = (6, 4)
"""First Linux with loops in BPF and with BPF_F_LINK, which ends a registration with its process."""
CAPABILITIES = {12: "CAP_NET_ADMIN", 38: "CAP_PERFMON", 39: "CAP_BPF"}
CAP_SYS_ADMIN = 21
WHOLE_UID_RANGE = 2**32 - 1
INSTALL = "sudo setup/install.sh"


@dataclass(frozen=True)
class Support:
    """Whether it works. `reason` and `advice` are empty if so; `advice` is a command or a hint."""

    ok: bool
    reason: str = ""
    advice: str = ""

    @property
    def text(self) -> str:
        """Reason and advice in one line."""
        return f"{self.reason}; {self.advice}"


@functools.cache
def bpf_support() -> Support:
    """Return the support, tested once per process. Without root only files and kernel version are checked."""
    return files_missing() or (_loaded() if os.geteuid() == 0 else too_old() or Support(True))


def files_missing(btf: Path = BTF, name: str = COUPLED_DEFAULT) -> Support | None:
    """Return what is missing before anything can be loaded; None if nothing is."""
    if not btf.exists():
        return Support(
            False,
            f"this kernel has no BTF ({btf} is missing)",
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as Debian's and Ubuntu's are",
        )
    if compiled(name).exists():
        return None
    if shutil.which("clang") is None:
        return Support(False, "clang is not installed, so no BPF object was compiled", f"run: {INSTALL}")
    return Support(False, "the BPF objects are not compiled", f"run: {INSTALL}")


def too_old(release: str | None = None, oldest: tuple[int, int] = OLDEST) -> Support | None:
    """Return why a kernel of this release (default: the running one) is too old; None if it is not."""
    release = platform.release() if release is None else release
    if _is_older(release, oldest):
        return Support(
            False,
            f"Linux {release} is too old: its struct_ops lack what is needed from {oldest[0]}.{oldest[1]} on",
            "boot a newer kernel (Debian 12: apt install -t bookworm-backports linux-image-amd64)",
        )
    return None


def _is_older(release: str, oldest: tuple[int, int]) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", release)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < oldest


def _loaded() -> Support:
    try:
        trial = BpfObject(compiled(COUPLED_DEFAULT))
    except LibbpfError as error:
        return Support(False, f"{error.filename or error.strerror}", f"run: {INSTALL}")
    except OSError as error:
        return Support(False, f"libbpf cannot be loaded ({error})", "run: apt install libbpf1")
    try:
        trial.load(registers=True)
    except LibbpfError as error:
        return too_old() or _refused(error)
    finally:
        trial.close()
    return Support(True)


def _refused(error: LibbpfError) -> Support:
    lockdown = LOCKDOWN.read_text() if LOCKDOWN.exists() else ""
    status = Path("/proc/self/status").read_text()
    jit = JIT.read_text().strip() if JIT.exists() else "1"
    return (
        locked_down(lockdown)
        or capabilities_missing(status)
        or jit_off(jit)
        or (forbidden(status, Path("/proc/self/uid_map").read_text()) if error.errno == errno.EPERM else None)
        or Support(False, f"{error.strerror}: {last_lines(error, 2)}".replace("\n", " "), "run: dmesg | tail")
    )


def locked_down(lockdown: str) -> Support | None:
    """Return a refusal if the kernel is locked down; the text of LOCKDOWN has the active mode in brackets."""
    if "[confidentiality]" not in lockdown:
        return None
    return Support(
        False,
        "the kernel is locked down for confidentiality, which forbids BPF programs to read its memory",
        "boot without lockdown=confidentiality",
    )


def capabilities_missing(status: str) -> Support | None:
    """Return which capabilities are missing; `status` is /proc/<pid>/status with a hexadecimal mask."""
    mask = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    held = {bit for bit in (*CAPABILITIES, CAP_SYS_ADMIN) if mask >> bit & 1}
    needed = [name for bit, name in CAPABILITIES.items() if bit not in held]
    if CAP_SYS_ADMIN in held:  # It includes CAP_BPF and CAP_PERFMON.
        needed = [name for name in needed if name == "CAP_NET_ADMIN"]
    if not needed:
        return None
    return Support(
        False,
        f"this process lacks {', '.join(needed)}: a container or a restricted root",
        "start the container with " + " ".join(f"--cap-add={name.removeprefix('CAP_')}" for name in needed),
    )


def forbidden(status: str, uid_map: str) -> Support | None:
    """Return why a process with all capabilities may not load BPF programs; None if it may.

    Either its capabilities are those of a user namespace, or a filter of system calls forbids bpf(2)
    (Seccomp is 2 in /proc/<pid>/status).
    """
    if uid_map.split() != ["0", "0", str(WHOLE_UID_RANGE)]:
        return Support(
            False,
            "this process is root of a user namespace only, which may not load BPF programs",
            "run it as root of the machine, or in a privileged container",
        )
    if "Seccomp:\t2" in status:
        return Support(
            False,
            "a seccomp filter, as containers have, forbids bpf(2)",
            "start the container with --security-opt seccomp=unconfined",
        )
    return None


def jit_off(enabled: str) -> Support | None:
    """Return a refusal if the BPF compiler is off; struct_ops must be compiled."""
    if enabled != "0":
        return None
    return Support(False, "the kernel's BPF compiler is off", "run: sysctl -w net.core.bpf_jit_enable=1")


RANKS_OLDEST = (6, 6)
"""First Linux with links to an interface's packets (TCX)."""


def ranks_unsupported() -> str:
    """Return why the programs do not work here, with what helps; empty if they do. Needs root."""
    for name in (STAMP, HIDE_SACKS):
        if missing := files_missing(name=name):
            return missing.text
    release = platform.release()
    if _is_older(release, RANKS_OLDEST):
        return f"Linux {release} is too old: programs at interfaces need 6.6; boot a newer kernel"
    for name in (STAMP, HIDE_SACKS):
        try:
            load(name).close()
        except HostUnfitError as error:
            return " ".join(str(error).split())
    return ""
