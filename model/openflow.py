"""Options of the data plane `ovs`: controller, mode of programming, and datapath, by name. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from common.errors import UsageError
from model.spec import OpenFlowSpec

CONTROLLERS: Mapping[str, str] = {
    "osken": "OpenFlow 1.3 with os-ken's encoder, in a process of the run",
    "pox": "the same logic as a component of POX, OpenFlow 1.0",
}
REMOTE, COMMAND = "remote:", "cmd:"
OWN = f"{REMOTE}PORT (your controller on this machine) or {COMMAND}'PROGRAM ...' (run inside, at port 6653)"
"""The user's own controllers, which make all decisions."""
MAX_PORT = 65535
MODES: Mapping[str, str] = {
    "reactive": "the controller installs a flow's rules when its first packet arrives",
    "proactive": "the controller installs tables and groups before any flow",
    "hybrid": "tables towards hosts in advance, rules of each flow towards the core",
}
DATAPATHS: Mapping[str, str] = {
    "auto": "the kernel's datapath if there is one, else user space",
    "kernel": "the kernel module openvswitch",
    "user": "Open vSwitch's datapath in user space",
}


def check_openflow(chosen: OpenFlowSpec) -> None:
    """Raise UsageError for an unknown name; the message lists the known ones."""
    known = {"controller": CONTROLLERS, "mode": MODES, "datapath": DATAPATHS}
    if is_own(chosen.controller):
        del known["controller"]
        if chosen.mode != OpenFlowSpec().mode:
            raise UsageError(
                f"--mode {chosen.mode}: --controller {chosen.controller} decides itself; leave --mode out"
            )
    for name, words in known.items():
        word = getattr(chosen, name)
        if word not in words:
            raise UsageError(f"--{name} {word}: unknown; choose from: {', '.join(words)}")


def is_own(controller: str) -> bool:
    """Return whether it is the user's own controller. Raises UsageError for an invalid one."""
    if controller.startswith(COMMAND):
        try:
            words = shlex.split(controller.removeprefix(COMMAND))
        except ValueError as error:
            raise UsageError(f"--controller {controller}: {error}") from error
        if not words:
            raise UsageError(
                f"--controller {controller}: name a program, e.g. {COMMAND}'PROGRAM --port 6653'"
            )
        return True
    return remote_port(controller) is not None


def remote_port(controller: str) -> int | None:
    """Return the port of `remote:PORT`; None for any other controller. Raises UsageError for a bad port."""
    if not controller.startswith(REMOTE):
        return None
    text = controller.removeprefix(REMOTE)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_PORT):
        raise UsageError(f"--controller {controller}: give a port from 1 to {MAX_PORT}, e.g. {REMOTE}6633")
    return int(text)


def openflow_words(chosen: OpenFlowSpec) -> str:
    """Return the options that differ from the defaults, as typed: `--mode proactive`; empty if none do."""
    usual = OpenFlowSpec()
    values = ((name, getattr(chosen, name)) for name in ("controller", "mode", "datapath"))
    return " ".join(
        f"--{name} {shlex.quote(value)}" for name, value in values if value != getattr(usual, name)
    )
