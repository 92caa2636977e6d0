"""What can be chosen of the data plane `ovs`, by name: who programs the switches and when, and what carries
packets. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from common.errors import UsageError
from model.spec import OpenFlowSpec

CONTROLLERS: Mapping[str, str] = {
    "osken": "OpenFlow 1.3 by os-ken's encoder, in a process of the run's",
    "pox": "the same logic as a component of POX, OpenFlow 1.0",
}
MODES: Mapping[str, str] = {
    "reactive": "a flow's rules when its first packet comes in",
    "proactive": "tables and groups before any flow",
    "hybrid": "tables downwards, a flow's rules upwards",
}
DATAPATHS: Mapping[str, str] = {
    "auto": "the kernel's where it has one",
    "kernel": "the module openvswitch",
    "user": "Open vSwitch's own, in user space",
}


def check_openflow(chosen: OpenFlowSpec) -> None:
    """Raises UsageError listing what there is."""
    known = {"controller": CONTROLLERS, "mode": MODES, "datapath": DATAPATHS}
    for name, words in known.items():
        word = getattr(chosen, name)
        if word not in words:
            raise UsageError(f"--{name} {word}: unknown; choose from: {', '.join(words)}")


def openflow_words(chosen: OpenFlowSpec) -> str:
    """What of it is not as usual, as one types it: `--mode proactive`; empty where all is."""
    usual = OpenFlowSpec()
    told = ((name, getattr(chosen, name)) for name in ("controller", "mode", "datapath"))
    return " ".join(f"--{name} {value}" for name, value in told if value != getattr(usual, name))
