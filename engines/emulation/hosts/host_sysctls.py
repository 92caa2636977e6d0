"""Sysctls that a point needs on its hosts beyond the kernel's defaults. Pure; provenance records them."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.routing import per_packet
from engines import kernel_hosts
from model import tuning
from model.flows import PlannedFlow
from model.spec import RunSpec
from topos.topology import Topology

_ALWAYS = {"net.ipv4.tcp_no_metrics_save": "1"}
"""A connection must not reuse what an earlier one learnt."""
_ECN = {"net.ipv4.tcp_ecn": "1"}
"""Request and accept ECN (Documentation/networking/ip-sysctl.rst); by default hosts only accept it."""

_REORDERING = {"net.ipv4.tcp_recovery": "5", "net.ipv4.tcp_min_rtt_wlen": "0"}
"""Do not treat reordering as loss (docs/decisions.md). RACK waits for a quarter of the minimum RTT,
multiplied by the reordering that DSACKs reported. With a window of 0 s the minimum is the current RTT instead
of the empty network's. 5 is RACK without the threshold of three duplicate ACKs; tcp_reordering does little.
Source: net/ipv4/tcp_recovery.c, Documentation/networking/ip-sysctl.rst."""


def needed(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> dict[str, str]:
    """Return sysctls (name with dots -> value) for every host; the spec's own sysctls override them."""
    ecn = _ECN if spec.link.ecn_pkts else {}
    reordering = _REORDERING if per_packet(spec.routing) else {}
    needed_by_cc = kernel_hosts.sysctls(spec.transport.cc)
    return {**_ALWAYS, **ecn, **reordering, **tuning.default(spec, topology, flows), **needed_by_cc}
