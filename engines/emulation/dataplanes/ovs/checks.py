"""Checks before a run: what Open vSwitch cannot carry, and what it needs on the machine."""

from __future__ import annotations

import os
import shlex
import shutil

from common.errors import HostUnfitError, UsageError
from controllers import routing
from controllers.openflow.riplpox import pox_dir
from controllers.rules import POLICIES
from engines.emulation import machine
from engines.emulation.dataplanes.ovs import daemons
from model.fields.words import beyond
from model.openflow import COMMAND, check_openflow
from model.schedulers import scheduled, scheduler_words
from model.spec import FIFO, LinkSpec, RunSpec
from topos.topology import Topology

HONOURED = frozenset({"rate_mbps", "delay_us", "queue_pkts", "queue_bytes", "nic_queue_pkts", "host_queue"})
"""Fields of a LinkSpec that the kernel's queue disciplines carry out (engines/emulation/kernel/shaping.py).
For stacks see FOLLOWED in engines/kernel_hosts.py: what real hosts follow on any data plane."""
_LONGEST_NAME = 15
"""Longest name of an interface (IFNAMSIZ)."""


def check(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for a spec that Open vSwitch cannot carry; the message names an alternative."""
    instead = "choose --dataplane fabric"
    if spec.routing not in POLICIES:
        both = ", ".join(name for name in POLICIES if name in routing.POLICIES)
        raise UsageError(f"OpenFlow has no routing '{spec.routing}', only {both}: {instead}")
    link = spec.link
    asked = {
        "a delay of hosts (--host-delay)": link.host_delay_us,
        "a delay of one link (--topology)": any(each.delay_us for each in topology.links),
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
    check_openflow(spec.openflow)
    _check_scheduler(spec)
    longest = max((f"{topology.nodes[s].name}-eth{len(topology.links)}" for s in topology.switches), key=len)
    if len(longest) > _LONGEST_NAME:
        raise UsageError(
            f"topology {topology.kind}: its port names are longer than {_LONGEST_NAME} characters, the limit "
            f"for Open vSwitch: {instead}"
        )


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
