"""Options of the data plane `ovs`: controller, mode of programming, and datapath, by name. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from common.errors import UsageError
from model.spec import OpenFlowSpec

CONTROLLERS: Mapping[str, str] = {
    "osken": "OpenFlow 1.3 with os-ken's encoder, in a process of the run",
    "pox": "the same logic as a component of POX, OpenFlow 1.0",
}
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
    for name, words in known.items():
        word = getattr(chosen, name)
        if word not in words:
            raise UsageError(f"--{name} {word}: unknown; choose from: {', '.join(words)}")


def openflow_words(chosen: OpenFlowSpec) -> str:
    """Return the options that differ from the defaults, as typed: `--mode proactive`; empty if none do."""
    usual = OpenFlowSpec()
    values = ((name, getattr(chosen, name)) for name in ("controller", "mode", "datapath"))
    return " ".join(f"--{name} {value}" for name, value in values if value != getattr(usual, name))
