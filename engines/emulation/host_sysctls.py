"""What a point needs of its hosts' kernels beyond their defaults. Pure; the provenance names all of it."""

from __future__ import annotations

from engines.spec import RunSpec

_ALWAYS = {"net.ipv4.tcp_no_metrics_save": "1"}
"""Nothing one connection learns may help the next."""
_ECN = {"net.ipv4.tcp_ecn": "1"}
"""Ask for ECN and grant it (Documentation/networking/ip-sysctl.rst); by default hosts only grant it."""


def needed(spec: RunSpec) -> dict[str, str]:
    """Sysctls (name with dots -> value) for every host. What the spec itself names goes before them."""
    return {**_ALWAYS, **(_ECN if spec.link.ecn_pkts else {})}
