"""What a point needs of its hosts' kernels beyond their defaults. Pure; the provenance names all of it."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.routing import per_packet
from model import tuning
from model.flows import PlannedFlow
from model.spec import RunSpec
from topos.topology import Topology

_ALWAYS = {"net.ipv4.tcp_no_metrics_save": "1"}
"""Nothing one connection learns may help the next."""
_ECN = {"net.ipv4.tcp_ecn": "1"}
"""Ask for ECN and grant it (Documentation/networking/ip-sysctl.rst); by default hosts only grant it."""

_REORDERING = {"net.ipv4.tcp_recovery": "5", "net.ipv4.tcp_min_rtt_wlen": "0"}
"""Do not take for loss what only came another way (docs/decisions.md). RACK waits for a quarter of the least
round-trip time, times the reordering its DSACKs have taught it: of the present one where the window of the
minimum is 0 s, instead of an empty network's. 5 is RACK without the threshold of three duplicate ACKs.
Source: net/ipv4/tcp_recovery.c, Documentation/networking/ip-sysctl.rst; tcp_reordering alone does little."""


def needed(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> dict[str, str]:
    """Sysctls (name with dots -> value) for every host. What the spec itself names goes before them."""
    ecn = _ECN if spec.link.ecn_pkts else {}
    reordering = _REORDERING if per_packet(spec.routing) else {}
    return {**_ALWAYS, **ecn, **reordering, **tuning.default(spec, topology, flows)}
