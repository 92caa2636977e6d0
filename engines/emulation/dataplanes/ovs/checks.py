"""What Open vSwitch cannot carry, and what it needs of the machine: told before anything starts."""

from __future__ import annotations

import os

from common.errors import HostUnfitError, UsageError
from controllers import routing
from controllers.openflow.riplpox import pox_dir
from controllers.rules import POLICIES
from engines.emulation.dataplanes.ovs import daemons
from engines.emulation.kernel import shaping
from model.openflow import check_openflow
from model.schedulers import scheduled, scheduler_words
from model.spec import FIFO, RunSpec
from topos.topology import Topology

_LONGEST_NAME = 15
"""Of an interface (IFNAMSIZ)."""


def check(spec: RunSpec, topology: Topology) -> None:
    """Raises UsageError with what to choose instead."""
    instead = "choose --dataplane fabric"
    if spec.routing not in POLICIES:
        both = ", ".join(name for name in POLICIES if name in routing.POLICIES)
        raise UsageError(f"routing '{spec.routing}' is none of OpenFlow's ({both}): {instead}")
    link = spec.link
    asked = {
        "random loss on a link (--loss)": link.loss,
        "an ECN threshold (--ecn)": link.ecn_pkts,
        "places of a queue given by chance (--random-drop)": link.random_pkts,
        f"queue discipline {link.discipline} (--discipline)": link.discipline != FIFO,
    }
    for what, value in asked.items():
        if value:
            raise UsageError(f"{what} is not to be had of the kernel's queues under Open vSwitch: {instead}")
    check_openflow(spec.openflow)
    _check_scheduler(spec)
    longest = max((f"{topology.nodes[s].name}-eth{len(topology.links)}" for s in topology.switches), key=len)
    if len(longest) > _LONGEST_NAME:
        raise UsageError(f"topology {topology.kind} is too large for Open vSwitch's port names: {instead}")


def _check_scheduler(spec: RunSpec) -> None:
    """It needs the controller's control socket, and rules that count flows one by one."""
    wanted = {"controller": "osken", "mode": "reactive or hybrid"}
    for name, words in wanted.items() if scheduled(spec) else ():
        chosen = getattr(spec.openflow, name)
        if chosen not in words.split(" or "):
            raise UsageError(
                f"--scheduler {scheduler_words(spec.scheduler)} with --{name} {chosen}, which does not tell "
                f"flows apart for it: choose --{name} {words}"
            )


def check_machine(spec: RunSpec) -> None:
    """Raises HostUnfitError, as root, where Open vSwitch is missing, or netem where a delay is asked."""
    daemons.check_installed()
    if spec.openflow.controller == "pox":
        pox_dir(os.environ)
    if spec.link.delay_us and not shaping.has_netem():
        raise HostUnfitError(
            f"links of {spec.link.delay_us:g} us delay need netem, which this kernel does not have "
            "(run: modprobe sch_netem): choose --delay 0 or --dataplane fabric"
        )
