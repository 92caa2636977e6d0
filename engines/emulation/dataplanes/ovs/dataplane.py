"""Open vSwitch as a MeasuredDataPlane: one bridge per switch, links shaped by the kernel, OpenFlow rules.

Bridges use fail mode `secure` and no STP, so only packets that match a rule of the controller are forwarded.
The controller starts before the bridges, which connect to it as soon as they exist.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from common.errors import HostUnfitError, RunError, UsageError
from controllers import routing
from controllers.openflow.control import ControlClient
from controllers.openflow.riplpox import pox_dir
from controllers.rules import POLICIES, supports
from controllers.scheduler import Network
from engines.emulation import machine
from engines.emulation.dataplanes.dataplane import (
    Change,
    Cpus,
    Octets,
    PlaneReading,
    QueueSamples,
    all_but,
    last_cpu,
)
from engines.emulation.dataplanes.ovs import daemons
from engines.emulation.dataplanes.ovs.controller import ControllerProcess, OwnController
from engines.emulation.dataplanes.ovs.daemons import RUN, Bridge, Daemons, Datapath, choose, command
from engines.emulation.dataplanes.ovs.wires import QueueCounts, Wires, bridge_ports, make_room
from engines.emulation.kernel import proc
from engines.emulation.sandbox.inside import Caller
from model.links import ports_of
from model.network_plan import port_rates_bps
from model.schedulers import scheduled, scheduler_words
from model.spec import COMMAND, FIFO, LinkEvent, LinkSpec, RunSpec, is_own, sub_seed
from model.words import beyond
from topos.topology import Topology

TARGET = "tcp:127.0.0.1:6653"
CONTROL = RUN / "control.sock"
POX = "pox"
CONTROLLERS: Mapping[str, Sequence[str]] = {
    "osken": (sys.executable, "-m", "controllers.openflow.osken_app"),
    POX: (sys.executable, "-m", "controllers.openflow.pox_app"),
}
READY_S, READY_S_A_SWITCH = 20.0, 0.5
PRIORITY = 10
"""Real-time priority (SCHED_FIFO) of the forwarding thread."""
_NOTHING = "ffffffffffff" + "020000000000" + "88b5" + "00" * 46
"""A frame of an experimental EtherType (IEEE 802), which hosts ignore."""
OPTIONS: Mapping[str, str] = {
    "n-handler-threads": "1",
    "n-revalidator-threads": "1",
    "max-idle": "30000",
    "flow-limit": "200000",
}
"""`other_config` of ovs-vswitchd: threads for upcalls and revalidation, how long (ms) an unused flow stays
cached, and how many may be. The user-space datapath handles packets and upcalls in the main thread, and runs
are short of CPUs."""
SOCKETS = "Open vSwitch's receive sockets"


class OvsDataPlane:
    """Open vSwitch's bridges and their controller. `controller` is None if the caller programs bridges."""

    def __init__(
        self,
        topology: Topology,
        link: LinkSpec,
        datapath: Datapath,
        controller: ControllerProcess | None,
        sample_ms: float = 0.0,
        foretells_paths: bool = True,
    ) -> None:
        self._topology = topology
        self._link = link
        self._datapath = datapath
        self._controller = controller
        self._sample_s = sample_ms / 1000
        self._foretells_paths = foretells_paths
        self._cpu = last_cpu() if datapath is Datapath.USER else -1
        self._wires = Wires(topology, link)
        target = TARGET if controller is not None else ""
        bridges = [
            Bridge(topology.nodes[switch].name, topology.dpid(switch), at)
            for switch, at in bridge_ports(topology).items()
        ]
        self._daemons = Daemons(bridges, datapath.value, target)
        self._rates_bps = port_rates_bps(topology, link)
        self._largest = np.zeros(len(self._rates_bps), np.uint32)
        self._drops_before = np.zeros(len(self._rates_bps), np.uint64)
        self._samples: list[tuple[float, npt.NDArray[np.uint32]]] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._sampler: threading.Thread | None = None
        self._failure: RunError | None = None
        self._start_s: dict[str, float] = {}
        self._ready: Mapping[str, object] = {}

    @property
    def partial_checksums(self) -> bool:
        """The user-space datapath sends checksums as received, so they must be computed."""
        return self._datapath is Datapath.KERNEL

    answers_arp = True
    queues_at_hosts = True

    @property
    def foretells_paths(self) -> bool:
        """Groups choose members by a hash of Open vSwitch, which controllers/routing.py cannot predict."""
        return self._foretells_paths

    @property
    def cpus(self) -> Cpus:
        """CPUs for the hosts. The user-space datapath forwards in one thread with a CPU of its own, as the
        fabric does; the kernel's datapath runs wherever a packet arrives."""
        return all_but(self._cpu)

    def start(self, ifindexes: Sequence[int], pids: Mapping[int, int]) -> None:
        """Make links, controller, bridges and rules. Raises RunError, DeadlineError, HostUnfitError."""
        RUN.mkdir(mode=0o755, exist_ok=True)
        started_s = time.monotonic()
        del ifindexes
        self._wires.make(pids)
        self._note("links_s", started_s)
        if self._controller is not None:
            self._controller.start()
            self._note("controller_s", started_s)
        self._daemons.start(OPTIONS)
        if self._datapath is Datapath.USER:
            pid = self._daemons.switch_pid
            # Enlarge the sending socket's buffer to hold all full queues. The first frame creates the socket.
            first = self._topology.nodes[self._topology.switches[0]].name
            packet = f"in_port=controller packet={_NOTHING} actions=output:1"
            command("ovs-ofctl", "packet-out", first, packet)
            make_room(pid, self._wires.room_pkts())
            if self._cpu >= 0:  # its thread runs before hosts' processes, on its own CPU
                os.sched_setaffinity(pid, {self._cpu})
                os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
        self._note("bridges_s", started_s)
        if self._controller is not None:
            self._ready = self._controller.wait_ready(
                READY_S + READY_S_A_SWITCH * len(self._topology.switches)
            )
            self._note("rules_s", started_s)
        if self._sample_s:
            self._sampler = threading.Thread(target=self._sample, name="queue samples", daemon=True)
            self._sampler.start()

    def stop(self) -> None:
        self._over.set()
        if self._sampler is not None:
            self._sampler.join()
            self._sampler = None
        try:
            if self._controller is not None:
                self._controller.stop()
        finally:
            try:
                self._daemons.stop()
            finally:
                self._wires.close()

    def check(self) -> None:
        self._daemons.check()
        if self._controller is not None:
            self._controller.check()
        if self._failure is not None:
            raise self._failure

    def set_link(self, link: int, up: bool) -> None:
        self._wires.set_link(link, up)

    def set_share(self, event: LinkEvent) -> None:
        """Take both ends of a cut link down; otherwise change the link's rate."""
        up, down = ports_of(event, self._topology)
        self._wires.set_link(up // 2, event.share > 0)
        for port in (up, down) if event.share else ():
            self._wires.set_share(port, event.share)

    def changes(self, spec: RunSpec) -> list[Change]:
        """See MeasuredDataPlane. The controller finds other paths when a link fails."""
        return [(event.t_s, partial(self.set_share, event)) for event in spec.events]

    @contextmanager
    def network(self, spec: RunSpec, octets: Octets) -> Iterator[Network]:
        """Return the controller's view; its flows come from the rules' counters. Raises RefabricError if
        no controller answers."""
        del spec, octets
        with closing(ControlClient(CONTROL)) as client:
            yield client

    def dpctl(self, switch: str, *arguments: str) -> str:
        """Run `ovs-ofctl COMMAND BRIDGE ...`. Raises CommandError with its last output."""
        first, *rest = arguments or ("show",)
        return command("ovs-ofctl", "-O", "OpenFlow13", first, switch, *rest)

    def reading(self) -> PlaneReading:
        """Return all counters; a queue's maximum is its capacity if it dropped, else the largest sample."""
        self.check()
        counts, now_s = self._wires.counts(), time.monotonic()
        astray = self._wires.socket_drops() if self._datapath is Datapath.USER else 0
        nothing = np.zeros(len(self._rates_bps), np.uint64)
        return PlaneReading(
            now_s=now_s,
            read_s=counts.read_s,
            tx_packets=counts.tx_packets,
            tx_bytes=counts.tx_bytes,
            drops=counts.drops,
            losses=nothing,
            marks=nothing,
            early_drops=nothing,
            pause_frames=nothing,
            paused_port_s=nothing.astype(np.float64),
            max_queue_pkts=self._longest(counts),
            queued_pkts=counts.queued_pkts.astype(np.uint32),
            hops=int(counts.tx_packets.sum()),
            astray={SOCKETS: astray},
            cpu_s={who: proc.cpu_s(pid) for who, pid in self.pids().items()},
            alone="ovs" if self._datapath is Datapath.USER else "",
            scalars={"now_s": now_s, "socket_drops": astray, "hops": int(counts.tx_packets.sum())},
        )

    def restart_maxima(self) -> None:
        with self._lock:
            self._largest[:] = 0
        self._drops_before = self._wires.counts().drops

    def queue_samples(self) -> QueueSamples:
        with self._lock:
            taken, self._samples = self._samples, []
        times = np.array([t_s for t_s, _ in taken])
        rows = [queued_pkts for _, queued_pkts in taken]
        return times, np.array(rows, np.uint32).reshape(len(rows), len(self._rates_bps))

    def provenance(self) -> Mapping[str, object]:
        version = command("ovs-vswitchd", "--version").splitlines()[0]
        settings = {"version": version, "datapath": self._datapath.words, "options": dict(OPTIONS)}
        return {"ovs": {**settings, "start_s": dict(self._start_s), "controller": dict(self._ready)}}

    def _longest(self, counts: QueueCounts) -> npt.NDArray[np.uint32]:
        with self._lock:
            np.maximum(self._largest, counts.queued_pkts.astype(np.uint32), out=self._largest)
            seen = self._largest.copy()
        full = self._wires.full_pkts()
        return np.where((counts.drops > self._drops_before) & (full > 0), full, seen).astype(np.uint32)

    def _sample(self) -> None:
        """Sample queues until `stop`; skip intervals that cannot be kept."""
        due = time.monotonic()
        while not self._over.wait(max(0.0, due - time.monotonic())):
            try:
                counts = self._wires.counts()
            except RunError as error:
                self._failure = error
                return
            queued = counts.queued_pkts.astype(np.uint32)
            with self._lock:
                self._samples.append((time.monotonic(), queued))
                np.maximum(self._largest, queued, out=self._largest)
            due = max(due + self._sample_s, time.monotonic())

    def pids(self) -> Mapping[str, int]:
        """Return the process ids of Open vSwitch's daemon and of the controller, if there is one."""
        found = {"ovs": self._daemons.switch_pid}
        return found if self._controller is None else {**found, "controller": self._controller.pid}

    def _note(self, what: str, started_s: float) -> None:
        self._start_s[what] = round(time.monotonic() - started_s, 3)


def make(spec: RunSpec, topology: Topology, raw: Path, caller: Caller) -> OvsDataPlane:
    """Return the data plane of a RunSpec with its controller, whose log goes to `raw`. A controller that is
    not refabric's own code runs as the caller."""
    config = {
        "topology": topology.kind,
        "params": dict(topology.params),
        "routing": spec.routing,
        "seed": sub_seed(spec.seed, "routing"),
        "mode": spec.openflow.mode,
        "listen": TARGET,
        "control": str(CONTROL),
        "connect_s": READY_S + READY_S_A_SWITCH * len(topology.switches),
    }
    RUN.mkdir(mode=0o755, exist_ok=True)
    chosen, log = spec.openflow.controller, raw / "controller.log"
    own = is_own(chosen)
    controller = (
        OwnController(chosen, RUN, log, caller)
        if own
        else ControllerProcess(CONTROLLERS[chosen], config, RUN, log, caller if chosen == POX else Caller())
    )
    datapath, sample_ms = choose(spec.openflow.datapath), float(spec.sampling.queues_ms)
    foretold = spec.openflow.mode != "proactive" and not own
    return OvsDataPlane(topology, spec.link, datapath, controller, sample_ms, foretold)


HONOURED = frozenset({"rate_mbps", "delay_us", "queue_pkts", "queue_bytes", "nic_queue_pkts", "host_queue"})
"""Fields of a LinkSpec that the kernel's queue disciplines carry out (engines/emulation/kernel/shaping.py).
For stacks see FOLLOWED in engines/kernel_hosts.py: what real hosts follow on any data plane."""


def check(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for a spec that Open vSwitch cannot carry; the message names an alternative."""
    instead = "choose --dataplane fabric"
    if not supports(spec.routing):
        both = ", ".join(name for name in POLICIES if name in routing.POLICIES)
        raise UsageError(f"OpenFlow has no routing '{spec.routing}', only {both}: {instead}")
    if spec.reroute_ms:
        raise UsageError(
            f"--reroute {spec.reroute_ms:g}: Open vSwitch's controller finds other paths as soon as a link "
            f"fails: {instead}"
        )
    if routing.lists_paths(spec.routing) and spec.openflow.mode != "reactive":
        raise UsageError(
            f"--mode {spec.openflow.mode}: routing '{spec.routing}' needs rules for each flow: choose --mode "
            "reactive"
        )
    link = spec.link
    asked = {
        "a delay of hosts (--host-delay)": link.host_delay_us,
        "a delay, loss or queue of one link (--topology)": any(
            each.delay_us or each.loss or each.queue_pkts for each in topology.links
        ),
        "random loss on a link (--loss)": link.loss,
        "an ECN threshold (--ecn)": link.ecn_pkts,
        "random drop in switch queues (--random-drop)": link.random_pkts,
        "links that follow a trace (--link-trace)": link.trace,
        f"queue discipline {link.discipline} (--discipline)": link.discipline != FIFO,
        "a limit in bytes on links with delay (--queue-bytes, --delay)": link.queue_bytes and link.delay_us,
        "another tolerance of clocks (--clock-tolerance)": link.clock_ppm not in {0.0, LinkSpec.clock_ppm},
        **dict.fromkeys(beyond({*HONOURED, "clock_ppm"}, spec, "link"), True),
    }
    for what, value in asked.items():
        if value:
            raise UsageError(f"{what} is not available with Open vSwitch's kernel queues: {instead}")
    _check_scheduler(spec)


def _check_scheduler(spec: RunSpec) -> None:
    """Raise UsageError unless the controller has a control socket and rules that count single flows."""
    wanted = {"controller": "osken", "mode": "reactive or hybrid"}
    for name, words in wanted.items() if scheduled(spec) else ():
        chosen = getattr(spec.openflow, name)
        if chosen not in words.split(" or "):
            raise UsageError(
                f"--scheduler {scheduler_words(spec.scheduler)} with --{name} {chosen}: that {name} does not "
                f"count single flows; choose --{name} {words}"
            )


def check_machine(spec: RunSpec) -> None:
    """Raise HostUnfitError if Open vSwitch is missing, or netem for links with delay, and UsageError if the
    user's controller is missing."""
    daemons.check_installed()
    if spec.openflow.controller == "pox":
        pox_dir(os.environ)
    if spec.openflow.controller.startswith(COMMAND):
        program = shlex.split(spec.openflow.controller.removeprefix(COMMAND))[0]
        if shutil.which(program) is None:
            raise UsageError(f"--controller {spec.openflow.controller}: there is no program {program} here")
    if spec.link.delay_us and not machine.found().netem:
        raise HostUnfitError(
            f"links of {spec.link.delay_us:g} us delay need netem, which this kernel does not have "
            "(run: modprobe sch_netem): choose --delay 0 or --dataplane fabric"
        )
