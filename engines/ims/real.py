"""SIP calls between real programs, as one workload of the engine `mininet`: what they need, and their run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from common.errors import HostUnfitError, UsageError
from engines.emulation.dataplanes.dataplane import FABRIC
from engines.emulation.outside import spawned
from engines.emulation.sandbox.client import require
from engines.engine import Observer, Workload
from engines.ims.calls import checked
from model.result import RunResult
from model.spec import RunSpec
from topos.topology import Topology
from workloads import sip
from workloads.sip import CONSTANT, SipSettings

STARTING_S = 5.0
SLACK_S = 60.0


def check(spec: RunSpec) -> None:
    """Raise UsageError for what the real IMS does not have, HostUnfitError for missing programs."""
    topology = spec.network()
    settings = checked(spec, topology)
    if spec.dataplane != FABRIC:
        raise UsageError(f"workload {sip.MATRIX}: choose --dataplane {FABRIC}, whose links have delays")
    if settings.arrivals != CONSTANT:
        raise UsageError(f"workload {sip.MATRIX}: SIPp calls at constant intervals: add arrivals={CONSTANT}")
    if extra_us(spec, settings, topology) < 0:
        raise UsageError(
            f"workload {sip.MATRIX}: links of {spec.link.delay_us:g} us delay already take longer than a "
            "look-up: choose a smaller --delay, or a larger lookup_us"
        )
    check_installed()
    require("refabric run ...")


def memory_mb(spec: RunSpec) -> float:
    """Return the peak: a dozen servers of 64 MB shared memory, and SIPp."""
    del spec
    return 1500.0


def expected_s(spec: RunSpec) -> float:
    return STARTING_S + spec.warmup_s + spec.seconds


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run the point (point.py, inside)."""
    return spawned("ims", spec, observer, raw, expected_s(spec) + SLACK_S)


CALLS = Workload(check, memory_mb, expected_s, run)


def extra_us(spec: RunSpec, settings: SipSettings, topology: Topology) -> float:
    """Return the delay to add to the HSS's link, each way, so that a look-up takes its time.

    Paths from other S-CSCFs than the first may be some links longer or shorter.
    """
    names = topology.host_names
    _, hss, _, scscfs = sip.roles_of(names, 1)
    path = topology.shortest_paths(topology.index(scscfs[0]), topology.index(hss))[0]
    links_us = (len(path) - 1) * spec.link.delay_us + 2 * spec.link.host_delay_us
    return settings.lookup_us / settings.share / 2 - links_us


KAMAILIO, SIPP, REDIS = "/usr/sbin/kamailio", "/usr/bin/sipp", "/usr/bin/redis-server"
FILES = Path(__file__).parent / "files"
MODULE = "*/kamailio/modules/ndb_redis.so"
"""Of the package kamailio-redis-modules, below LIBRARIES."""
LIBRARIES = Path("/usr/lib")
INSTALL = "sudo setup/install.sh --ims"


def missing() -> list[str]:
    """Return the names of missing programs."""
    programs = [Path(program) for program in (KAMAILIO, SIPP, REDIS)]
    absent = [program.name for program in programs if not os.access(program, os.X_OK)]
    module = [] if any(LIBRARIES.glob(MODULE)) else ["kamailio's ndb_redis.so"]
    return [*absent, *module, *([] if shutil.which("gcc") else ["gcc"])]


def check_installed() -> None:
    """Raise HostUnfitError with the command that installs the programs, if some are missing."""
    if absent := missing():
        raise HostUnfitError(f"a real IMS needs {', '.join(absent)}: run {INSTALL}")
