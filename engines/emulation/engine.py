"""The engine `mininet`: runs one RunSpec at a time on real Linux hosts, in private namespaces.

Flows between those hosts: what they need of the machine, and their run.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from ccp.names import is_agents
from common.errors import HostUnfitError, StalledFlowError, UsageError
from engines import app
from engines.emulation import machine, noise
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.kernel import mptcp_genl
from engines.emulation.kernel.namespaces import sysctl_path
from engines.emulation.outside import spawned
from engines.emulation.path_manager import MAX_EXTRA_SUBFLOWS
from engines.emulation.sandbox.client import emulation_lock, require
from engines.emulation.traffic.iperf3 import iperf3_program, mptcp_library
from engines.engine import Observer
from engines.kernel_hosts import MINTCP, check_spec, samples_bytes, slack_s, tables_bytes
from engines.provenance import free_memory_mb, origin, output
from engines.workload import ByWorkload
from fabric.plan import FRAME_BITS
from model.congestion import BASELINE, CONGESTION_CONTROLS, COUPLED_DEFAULT
from model.flows import PlannedFlow, planned_flows
from model.links import longest_queue_pkts
from model.network_plan import MAX_PACKETS, by_rank
from model.result import RunResult
from model.schedulers import opens_subflows
from model.spec import LinkSpec, RunSpec, check_marks
from topos.topology import Topology

WAIT_S = 3600.0
"""How long a run waits for another emulation of this machine to end."""
ATTEMPTS = 3
AGENTS_OLDEST = (6, 10)
"""First Linux whose cong_control has the arguments that the datapath under an agent takes."""


def check(spec: RunSpec) -> None:
    """Raise UsageError for a spec that real hosts do not support, HostUnfitError for an unfit machine."""
    topology = spec.network()
    check_with(spec, topology, planned_flows(spec, topology), "refabric run ... (or ./run_mptcp.sh ...)")
    app.check(spec, topology)


def check_with(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], command: str) -> None:
    """Raise as `check` does, for these flows. Without flows, users start programs at the prompt."""
    check_marks(spec)
    plane = DATAPLANES.get(spec.dataplane)
    if plane is None:
        known = " or ".join(DATAPLANES)
        raise UsageError(f"data plane '{spec.dataplane}' is not available: choose --dataplane {known}")
    plane.check(spec, topology)
    check_spec(spec, topology, flows)
    noise.check_stalls(spec)
    check_sysctls(spec.transport.sysctls)
    check_memory(spec, topology, flows, free_memory_mb())
    require(command)
    plane.check_machine(spec)
    for cc in app.congestion_controls(spec, flows) or {spec.transport.cc}:
        _check_congestion_control(cc)
    if by_rank(spec.link.discipline) or spec.transport.cc == MINTCP:
        machine.check_ranks(spec)
    if spec.traffic == "iperf3":
        iperf3_program()
    if spec.transport.subflows > 1:
        _check_mptcp(spec, flows)


def memory_mb(spec: RunSpec) -> float:
    """Return an upper bound, the hosts' kernel memory included."""
    topology = spec.network()
    return estimated_mb(spec, topology, planned_flows(spec, topology))


def expected_s(spec: RunSpec) -> float:
    """Return the time of traffic plus start, connection and collection (about 2 s + 12 ms per host)."""
    hosts = len(spec.network().hosts)
    return spec.warmup_s + spec.seconds + 2.0 + 0.012 * hosts


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run the point. One with a stalled connection is repeated, up to `ATTEMPTS` times in total; the
    provenance lists the failed attempts."""
    limit_s = spec.warmup_s + spec.seconds + slack_s(spec)
    stalled: list[str] = []
    while True:
        try:
            result = spawned("point", spec, observer, raw, limit_s)
        except StalledFlowError as error:
            stalled.append(str(error))
            if len(stalled) == ATTEMPTS:
                raise
            observer.note(f"{error}; trying again")
            continue
        return dataclasses.replace(result, provenance={**result.provenance, "stalled_attempts": stalled})


class MininetEngine(ByWorkload):
    """An Engine with real Linux hosts and one of DATAPLANES between them."""

    name = "mininet"
    parallel = 1

    def __init__(self, wait_s: float = WAIT_S) -> None:
        """Wait at most `wait_s` for another emulation of this machine to end."""
        self._wait_s = wait_s
        self._lock = ExitStack()
        self._locked = False

    def close(self) -> None:
        """Release the machine's emulation lock. The end of the process releases it too."""
        self._lock.close()
        self._locked = False

    def cpus(self, spec: RunSpec) -> int:
        """See `Engine.cpus`: points run one at a time anyway."""
        del spec
        return 1

    def coupled_cc(self) -> tuple[str, str]:
        """See `Engine.coupled_cc`."""
        found = machine.found().congestion
        return (COUPLED_DEFAULT, "") if found.ok else (BASELINE, found.text)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """See `Engine.run`."""
        self.take_machine()
        result = super().run(spec, observer, raw)
        return dataclasses.replace(result, provenance={**origin(), "tools": _tools(), **result.provenance})

    def take_machine(self) -> None:
        """See `Engine.take_machine`: two emulations would compete for the CPUs, so the later one waits."""
        if not self._locked:
            self._lock.enter_context(emulation_lock(self._wait_s, _say_waiting))
            self._locked = True


def _say_waiting(owner: str) -> None:
    print(f"refabric: waiting for another emulation to end: {owner}", file=sys.stderr, flush=True)


_VERSIONS = {
    "iperf3": ["iperf3", "--version"],
    "mininet": ["mn", "--version"],
    "iproute2": ["ip", "-V"],
}


@functools.cache
def _tools() -> dict[str, str]:
    """Return the first line of each tool's version; `missing` if it is not installed."""
    return {name: _version(argv) for name, argv in _VERSIONS.items()}


def _version(argv: list[str]) -> str:
    if shutil.which(argv[0]) is None:
        return "missing"
    return (output(argv).splitlines() or ["unknown"])[0]


def check_sysctls(names: Iterable[str]) -> None:
    """Raise UsageError for a sysctl that this kernel does not have."""
    for name in names:
        if not sysctl_path(name).is_file():
            raise UsageError(f"--sysctl {name}: this kernel has no such sysctl; `sysctl -a` lists all")


def _check_congestion_control(cc: str) -> None:
    if is_agents(cc):
        found = machine.too_old(oldest=AGENTS_OLDEST) or machine.found().congestion
        if not found.ok:
            raise HostUnfitError(f"congestion control {cc}: {found.text}, or choose --engine simulator")
        return
    if cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].bpf:
        found = machine.found().congestion
        if not found.ok:
            raise HostUnfitError(f"congestion control {cc}: {found.text}, or choose --cc {BASELINE}")
        return
    available = sysctl_path("net.ipv4.tcp_available_congestion_control").read_text().split()
    if cc not in available:
        raise HostUnfitError(
            f"congestion control {cc} is not in this kernel (it has: {', '.join(available)}); "
            f"choose one of those with --cc, or run: modprobe tcp_{cc}"
        )


def _check_mptcp(spec: RunSpec, flows: Sequence[PlannedFlow]) -> None:
    subflows = spec.transport.subflows
    if spec.traffic == "iperf3" or app.app_of(spec):
        mptcp_library()
    support = mptcp_genl.support()
    if support.level is mptcp_genl.PathManagement.NONE:
        raise HostUnfitError(support.advice)
    mixed = len({flow.subflows for flow in flows if flow.mptcp}) > 1
    in_kernel = support.level is mptcp_genl.PathManagement.IN_KERNEL
    if in_kernel and (spec.transport.joins_late or opens_subflows(spec)):
        raise HostUnfitError(f"subflows that join late need refabric's path manager; {support.advice}")
    if in_kernel and (mixed or subflows > MAX_EXTRA_SUBFLOWS + 1):
        raise HostUnfitError(support.advice)


MB = 1 << 20
_PROGRAM = 180 * MB
_HOST, _PORT = 350_000, 512
_IPERF3_FLOW = 6 * MB
"""A client and a server, each a process."""
_SUBFLOW = 16_000
"""Two sockets of the kernel, without data."""
_PACKET = 2048 + 64 + 16 + 2304
"""A frame, its descriptor and event in the core; the sender's copy with its sk_buff."""
_SEND_BUFFER_PKTS = (4 << 20) // 1448
"""What the kernel's largest default send buffer holds (tcp_wmem, 4 MB)."""
_LINKS_ON_A_PATH = 6


def estimated_mb(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> float:
    """Return an upper bound of the peak memory in MB, hosts' kernel memory included.

    Peaks of whole commands, kernel memory included (memory cgroup, Linux 6.18, FatTrees k=4 and k=8, TCP and
    8 subflows, traffic in one process): 176 to 183 MB, of which the kernel's part is 5 to 6 MB with 16 hosts
    and 36 to 42 MB with 128. The rest are bounds: a packet in a queue is a frame in the core and a copy in
    its sender's socket; an unbounded queue holds what the senders' buffers allow, and no more packets than
    the core has descriptors; a sample is counted inside, and twice in the command as a row of a table.
    """
    subflows = sum(flow.subflows for flow in flows)
    held = (
        _PROGRAM
        + _HOST * len(topology.hosts)
        + 2 * len(topology.links) * _PORT
        + (_IPERF3_FLOW * len(flows) if spec.traffic == "iperf3" else 0)
        + _SUBFLOW * subflows
        + _PACKET * _packets(spec.link, topology, len(flows), subflows)
        + _sampled(spec, topology, subflows)
    )
    return held / MB + app.memory_mb(spec, topology)


def _sampled(spec: RunSpec, topology: Topology, subflows: int) -> float:
    """Return the memory of samples: inside, and in the command as parts of tables and as tables."""
    ports = 2 * len(topology.links)
    return samples_bytes(spec, ports, subflows) + 2 * tables_bytes(spec, ports, subflows)


def check_memory(
    spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], available_mb: float
) -> None:
    """Raise UsageError if the machine has less memory than needed."""
    needed_mb = estimated_mb(spec, topology, flows)
    if needed_mb <= available_mb:
        return
    subflows = sum(flow.subflows for flow in flows)
    sampled_mb = _sampled(spec, topology, subflows) / MB
    raise UsageError(
        f"emulating {topology.kind} with {len(topology.hosts)} hosts and {subflows} subflows takes up to "
        f"{needed_mb:,.0f} MB of memory ({sampled_mb:,.0f} MB of them samples), but only "
        f"{available_mb:,.0f} MB are free: {_memory_advice(spec, sampled_mb > needed_mb / 2)}"
    )


def _memory_advice(spec: RunSpec, mostly_samples: bool) -> str:
    if mostly_samples:
        return "choose fewer --seconds or longer intervals between samples"
    if not spec.link.queue_limit_pkts:
        return "choose a smaller --k, fewer --subflows or a limit to --queue"
    if spec.traffic == "iperf3":
        return "choose a smaller --k, fewer --subflows or --traffic native"
    return "choose a smaller --k or fewer --subflows"


def _packets(link: LinkSpec, topology: Topology, flows: int, subflows: int) -> int:
    sent = subflows * _SEND_BUFFER_PKTS
    if not (queue := longest_queue_pkts(link, topology)):
        return min(MAX_PACKETS, sent)
    on_wire = 2 * link.rate_mbps * link.delay_us / FRAME_BITS * _LINKS_ON_A_PATH
    return min(MAX_PACKETS, sent, round(flows * (queue * _LINKS_ON_A_PATH + on_wire)) + 4 * subflows)
