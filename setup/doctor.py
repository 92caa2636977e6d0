"""`refabric doctor`: tests whether this machine can run experiments, by running small ones.

Every failed check names the command that repairs it. The last five start a small network in private
namespaces and move real data for two or three seconds each: four through the fabric, and one through Open
vSwitch if it is installed. The first of them also measures the noise of the idle machine.
"""

from __future__ import annotations

import json as json_
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import topos
from common.errors import BusyError, HostUnfitError, RefabricError
from engines.emulation import calibrate, machine
from engines.emulation.dataplanes.dataplane import OVS
from engines.emulation.dataplanes.ovs.daemons import check_installed
from engines.emulation.engine import MininetEngine
from engines.emulation.kernel import mptcp_genl
from engines.emulation.kernel.namespaces import sysctl_path
from engines.emulation.kernel.proc import CpuSampler
from engines.emulation.noise import measure
from engines.emulation.outside import UNKEPT
from engines.emulation.sandbox import client
from engines.emulation.traffic.iperf3 import iperf3_program, mptcp_library
from engines.engine import Engine, Silent
from engines.ims.real import missing as missing_sip
from engines.kernel_hosts import MINTCP
from engines.linux.kernel import store as kernels
from fabric.plan import FRAME_BITS, PAYLOAD_SHARE
from model.congestion import CONGESTION_CONTROLS
from model.machine import (
    FIT_PCT,
    MIN_RATE_MBPS,
    Capacity,
    MachineNoise,
    Utilisation,
    demand,
    frame_us,
    rate_by_noise,
    rate_carried,
    rounded_down,
)
from model.result import RunResult
from model.spec import (
    LinkSpec,
    RunSpec,
    SamplingSpec,
    StackSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)
from topos.topology import Node
from workloads import trace
from workloads.flow import Flow

RATE_MBPS = 20.0
SHORT_S, SHORT_AT_S, MAX_TIMES_ALONE = 0.3, 1.0, 1.5
"""Seconds that the payload of a short flow takes and at which it begins, and how many times its time alone it
may take."""
TOLERANCE = 0.02
SUBFLOWS = 4
OVS_MBPS, OVS_QUEUE_PKTS = 5.0, 30
MIN_FREE_MB = 500
TREES = (4, 6, 8, 10, 12)
NOISE_S = 2.0
LOAD_MBPS, LOAD_SUBFLOWS = 20.0, 8
"""Load for measuring the cost of a frame at k=4; few flows or short paths would be cheaper per frame."""
INSTALL = "sudo setup/install.sh"


BUSY = "not tested to the end: run it again when the other emulation has ended"


@dataclass(frozen=True)
class Check:
    """Result of one check: its name, whether it passed, what was found, and the command that repairs it.

    A machine that fails a check that is not `needed` is still fit, with restrictions; `fix` is then a
    sentence.
    """

    name: str
    ok: bool
    seen: str
    fix: str = ""
    needed: bool = True
    tested: bool = True
    """False if another emulation uses the machine: then nothing is known."""

    @property
    def mark(self) -> str:
        if not self.tested:
            return "busy"
        return "ok  " if self.ok else "FAIL" if self.needed else "lack"


def main(json: bool = False) -> int:
    """Print every check as it is made (`json`: one object per line); return 0 if fit, else 3."""
    fit = tested = True
    for check in checks():
        fit = fit and (check.ok or not check.needed)
        tested = tested and check.tested
        if json:
            print(json_.dumps({"event": "check", **asdict(check)}), flush=True)
            continue
        print(f"{check.mark}  {check.name}: {check.seen}", flush=True)
        if not check.ok:
            print(f"      {'run: ' if check.needed else ''}{check.fix}", flush=True)
    if not json:
        print(verdict(fit, os.uname().machine) if tested else BUSY)
    return 0 if fit else HostUnfitError.exit_code


def verdict(fit: bool, machine: str) -> str:
    """Return the last line. `machine` is the architecture (uname -m)."""
    if fit:
        return "this machine is fit"
    without = "--engine linux, real hosts in virtual time," if machine == "x86_64" else "--engine simulator"
    return (
        "this machine is not fit for real hosts in real time; the failed checks are marked FAIL. "
        f"{without} needs none of them"
    )


def checks() -> Iterator[Check]:
    """Yield all checks in order; checks that start hosts run only if all earlier ones passed."""
    good = True
    for check in (
        _root,
        _kernel,
        _congestion_control,
        coupled,
        _tools,
        _sip_servers,
        _disk,
        virtual,
        carried,
    ):
        found = check()
        good = good and (found.ok or not found.needed)
        yield found
    if not good:
        return
    engine = MininetEngine(wait_s=0.0)
    try:
        try:
            engine.take_machine()
        except BusyError as error:
            yield _not_tested("real traffic", str(error))
            return
        yield _noise(engine)
        yield _transfer(engine)
        yield _shaping(engine)
        yield _ranks(engine)
        yield _open_vswitch(engine)
    finally:
        engine.close()


def _not_tested(name: str, why: str) -> Check:
    return Check(name, False, why, "refabric doctor  # when it has ended", tested=False)


def _root() -> Check:
    root, uid = client.available(), os.geteuid()
    seen = f"no (uid {uid})" if not root else f"a helper; the rest is user {uid}" if uid else "yes"
    return Check("root", root, seen, "sudo .venv/bin/refabric doctor")


def _kernel() -> Check:
    support = mptcp_genl.support()
    fit = support.level is not mptcp_genl.PathManagement.NONE
    seen = f"Linux {os.uname().release}: {support.level.value}"
    return Check("kernel", fit, seen if fit else f"{seen}; {support.advice}", "sysctl -w net.mptcp.enabled=1")


def _congestion_control() -> Check:
    available = sysctl_path("net.ipv4.tcp_available_congestion_control").read_text().split()
    return Check("congestion control", "reno" in available, ", ".join(available), "modprobe tcp_reno")


def coupled() -> Check:
    """Check whether MPTCP can use coupled congestion control; without it MPTCP runs uncoupled."""
    found = machine.found().congestion
    algorithms = ", ".join(name for name, cc in CONGESTION_CONTROLS.items() if cc.bpf)
    seen = f"{algorithms} by BPF" if found.ok else f"MPTCP will run uncoupled reno: {found.reason}"
    return Check("coupled congestion control", found.ok, seen, found.advice, needed=False)


def _tools() -> Check:
    missing = [tool for tool in ("mn", "unshare", "setpriv", "ip") if shutil.which(tool) is None]
    for find in (iperf3_program, mptcp_library):
        try:
            find()
        except HostUnfitError as error:
            missing.append(str(error).partition(" ")[0])
    return Check("tools", not missing, f"missing: {', '.join(missing)}" if missing else "all found", INSTALL)


def _sip_servers() -> Check:
    absent = missing_sip()
    seen = f"missing: {', '.join(absent)}" if absent else "Kamailio, SIPp and redis are here"
    words = "run: sudo setup/install.sh --ims; refabric run ims --engine simulator needs none"
    return Check("SIP servers", not absent, seen, words, needed=False)


def _disk() -> Check:
    free_mb = shutil.disk_usage(Path.cwd()).free >> 20
    return Check("disk", free_mb >= MIN_FREE_MB, f"{free_mb} MB free here", "df -h .  # then free some space")


def virtual() -> Check:
    """Check whether the kernel of the engine linux is built, which needs neither root nor a quiet machine."""
    built, machine = kernels.current(), os.uname().machine
    if machine != "x86_64":
        return Check("virtual time", False, f"not on {machine}", "--engine linux needs x86-64", needed=False)
    if built is None:
        seen = "no kernel is built for --engine linux"
        advice = "refabric kernel build, about 8 minutes on 2 CPUs; needs no root"
        return Check("virtual time", False, seen, advice, needed=False)
    seen = f"Linux {built.version} for --engine linux: {', '.join(built.congestion_controls)}"
    return Check("virtual time", True, seen)


def carried() -> Check:
    """Report the link rates that FatTrees of several sizes sustain, measured or estimated. Always passes."""
    capacity = calibrate.capacity()
    known = ", ".join(f"{_named(topology)} {rate:g} Mb/s" for topology, rate in calibrate.rates())
    rates = [(k, rate_carried(capacity, TopologySpec("fat_tree", {"k": k}))) for k in TREES]
    follows = ", ".join(f"k={k} {rounded_down(rate):g}" for k, rate in rates)
    what = f"{capacity.hops_per_s / 1e6:.2g} M packet-hops/s at {FIT_PCT:.0f} % busy"
    if capacity.estimated:
        source = f"not measured (sudo refabric calibrate --k 8); estimated from {capacity.cpus} CPUs"
    else:
        source = f"measured {known or 'trials only'}; derived from it"
    return Check("capacity", True, f"{source}: {what}, which is {follows} Mb/s with 8 subflows")


def _noise(engine: Engine) -> Check:
    """Measure idle jitter and stolen time of each CPU for two seconds, then the cost of a frame."""
    name = "noise"
    spec = RunSpec(
        link=LinkSpec(LOAD_MBPS),
        topology=TopologySpec("fat_tree", {"k": TREES[0]}),
        transport=TransportSpec(LOAD_SUBFLOWS),
        traffic="native",
        warmup_s=1.0,
        seconds=2.0,
    )
    use = CpuSampler()
    noise = measure(NOISE_S)
    idle_pct = use.sample().machine.busy_pct
    cpus = len(os.sched_getaffinity(0))

    def judge(result: RunResult) -> Check:
        metrics = result.metrics
        cost_us = frame_us(metrics, cpus, idle_pct, demand(spec).hops)
        seen = Utilisation(metrics["packet_hops_per_s"], metrics["cpu_busy_pct"])
        return noise_check(noise, cost_us, Capacity((seen,), cpus))

    return replace(_judged(name, engine, spec, judge), needed=False)


def noise_check(noise: MachineNoise, cost_us: float, capacity: Capacity) -> Check:
    """Return what the machine sustains now, by its CPUs and by its noise, and what would help."""
    allowed = rate_by_noise(noise)
    trees = {k: TopologySpec("fat_tree", {"k": k}) for k in TREES}
    rates = {k: min(allowed, rate_carried(capacity, tree)) for k, tree in trees.items()}
    fits = ", ".join(f"k={k} {rounded_down(rate):g}" for k, rate in rates.items() if rate >= MIN_RATE_MBPS)
    what = f"about {fits} Mb/s with {LOAD_SUBFLOWS} subflows" if fits else "no FatTree at 2 Mb/s"
    noisy = "" if noise.quiet else f"; the noise alone limits the rate to {rounded_down(allowed):g} Mb/s"
    return Check(
        "noise",
        noise.quiet,
        f"{noise}. A frame takes {cost_us:.0f} us of CPU from host to host: {capacity.cpus} CPUs sustain "
        f"{what} now{noisy}",
        "use a machine type with dedicated CPUs, or with more of them; virtual time "
        "(--engine linux, --engine simulator) needs neither. --rate auto chooses what this machine sustains",
        needed=False,
    )


def _named(topology: TopologySpec) -> str:
    size = ", ".join(f"{name}={value}" for name, value in sorted(topology.params.items()))
    return size if topology.kind == "fat_tree" else f"{topology.kind} {size}"


def _transfer(engine: Engine) -> Check:
    name = f"MPTCP, {SUBFLOWS} subflows"

    def judge(result: RunResult) -> Check:
        joined = min(flow.subflows_joined for flow in result.flows)
        seen = f"{joined} of {SUBFLOWS} subflows joined, {result.flows[0].goodput_mbps:.2f} Mb/s"
        return Check(
            name, joined == SUBFLOWS, seen, "sysctl net.mptcp  # then check for a firewall in new namespaces"
        )

    return _run(name, engine, SUBFLOWS, judge)


def _shaping(engine: Engine) -> Check:
    name = f"a link of {RATE_MBPS:g} Mb/s"

    def judge(result: RunResult) -> Check:
        wire_mbps = result.flows[0].goodput_mbps / PAYLOAD_SHARE
        off = abs(wire_mbps / RATE_MBPS - 1)
        late = result.metrics["late_p99_us"]
        seen = f"carried {wire_mbps:.2f} Mb/s ({100 * off:.1f} % off), p99 {late:.0f} us late"
        return Check(name, off <= TOLERANCE, seen, "top  # end what keeps the CPUs busy, then repeat this")

    return _run(name, engine, 1, judge)


def _ranks(engine: Engine) -> Check:
    """Check that a host stamps ranks and sends by them: a short flow must end as if a long one from the same
    host were not there."""
    name = "pFabric's ranks"
    lack = "only --discipline pfabric between real hosts is unavailable; simulated hosts have it"
    if reason := machine.found().ranks:
        return Check(name, False, reason, lack, needed=False)
    topology = TopologySpec("star", {"n": 2})
    src, dst = (node.name for node in _hosts(topology))
    short = Flow(src, dst, round(SHORT_S * RATE_MBPS * 1e6 / 8), SHORT_AT_S)
    flows = trace.written([Flow(src, dst), short])
    spec = RunSpec(
        link=LinkSpec(RATE_MBPS, discipline="pfabric"),
        topology=topology,
        transport=TransportSpec(1, MINTCP),
        workload=WorkloadSpec(trace.NAME, {"name": "doctor", "flows": flows}),
        traffic="native",
        stack=StackSpec(initial_window=12, min_rto_ms=30, delayed_ack_ms=0, max_window=15),
        warmup_s=0.5,
        seconds=2.0,
    )
    return replace(_judged(name, engine, spec, lambda result: judge_ranks(name, result, lack)), needed=False)


def _hosts(topology: TopologySpec) -> list[Node]:
    built = topos.build(topology.kind, topology.params)
    return [built.nodes[host] for host in built.hosts]


def judge_ranks(name: str, result: RunResult, lack: str) -> Check:
    """Judge the two flows of `_ranks`: with equal shares the short one would take twice its time alone."""
    stamped = result.provenance["stamp"]["stamped"]
    long, short = sorted(result.flows, key=lambda flow: flow.size_bytes)
    times = short.completed_s / SHORT_S
    seen = (
        f"by BPF: {stamped} segments stamped; a short flow beside a long one took {times:.2f} times its time "
        f"alone, congestion control {long.cc}"
    )
    return Check(name, stamped > 0 and times <= MAX_TIMES_ALONE and long.cc == MINTCP, seen, lack)


def _open_vswitch(engine: Engine) -> Check:
    """Check rate, queue limit and offloads of a link that three hosts per side overload."""
    name = "Open vSwitch"
    try:
        check_installed()
    except HostUnfitError as error:
        return Check(name, False, str(error), "only --dataplane ovs is unavailable", needed=False)
    spec = RunSpec(
        link=LinkSpec(OVS_MBPS, queue_pkts=OVS_QUEUE_PKTS),
        topology=TopologySpec("dumbbell", {"n": 3}),
        workload=WorkloadSpec("stride", {"i": 3}),
        dataplane=OVS,
        warmup_s=2.0,
        seconds=3.0,
        sampling=SamplingSpec(queues_ms=20),
    )

    return replace(_judged(name, engine, spec, lambda result: _judge_queue(name, result)), needed=False)


def _judge_queue(name: str, result: RunResult) -> Check:
    """Judge the overloaded port: what it carried in its fullest second, and how many packets it held."""
    (bottleneck,) = (port for port in result.ports if (port.node, port.peer) == ("l0", "r0"))
    links, queues = result.samples["links"], result.samples["queues"]
    fullest_pct = max(links["utilisation_pct"][links["port"] == bottleneck.port], default=0.0)
    longest = max(queues["pkts"][queues["port"] == bottleneck.port], default=0)
    frame_bytes = max(port.tx_bytes / max(1, port.tx_packets) for port in result.ports)
    full = bottleneck.drops > 0 and OVS_QUEUE_PKTS / 2 < longest <= OVS_QUEUE_PKTS
    right = abs(fullest_pct / 100 - 1) <= TOLERANCE and frame_bytes <= FRAME_BITS / 8
    seen = (
        f"{result.provenance['ovs']['datapath']}; {OVS_MBPS:g} Mb/s carried "
        f"{fullest_pct / 100 * OVS_MBPS:.2f}, a queue of {OVS_QUEUE_PKTS} held {longest} packets and dropped "
        f"{bottleneck.drops}, frames had at most {frame_bytes:.0f} bytes on average"
    )
    return Check(name, right and full, seen, "the kernel's queues do not meet the needs of --dataplane ovs")


def _run(name: str, engine: Engine, subflows: int, judge: Callable[[RunResult], Check]) -> Check:
    """Run one flow between two hosts on one switch for three seconds."""
    spec = RunSpec(
        link=LinkSpec(RATE_MBPS),
        topology=TopologySpec("star", {"n": 2}),
        transport=TransportSpec(subflows),
        workload=WorkloadSpec("reference"),
        warmup_s=1.0,
        seconds=3.0,
    )
    return _judged(name, engine, spec, judge)


def _judged(name: str, engine: Engine, spec: RunSpec, judge: Callable[[RunResult], Check]) -> Check:
    try:
        engine.check(spec)
        return judge(engine.run(spec, Silent(), UNKEPT))
    except BusyError as error:
        return _not_tested(name, str(error))
    except RefabricError as error:
        return Check(name, False, str(error), f"{INSTALL}  # then repair what the message says")
