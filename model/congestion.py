"""Congestion controls by name: what each is, and what it asks of the machine. Pure.

A new one is a BPF source in engines/emulation/congestion/ and a line here; one of the kernel's own is the
line alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BASELINE = "reno"
"""What plain TCP runs beside a coupled algorithm, and what that one is with a single subflow (RFC 6356)."""
COUPLED_DEFAULT = "lia"
_OURS = "rf_"
"""Before the name of every algorithm of ours in the kernel, so that none can be taken for a module's."""


@dataclass(frozen=True)
class CongestionControl:
    """`bpf`: ours, loaded for the life of a run. `coupled`: its subflows know of each other. `ecn`: reacts
    to marks (RFC 3168), which both ends must then negotiate. `emulated`: hosts with a kernel can have it;
    what simulated ones have the core says (fabric/simulation/congestion/registry.hpp)."""

    title: str
    bpf: bool = False
    coupled: bool = False
    ecn: bool = False
    emulated: bool = True


CONGESTION_CONTROLS: dict[str, CongestionControl] = {
    "reno": CongestionControl("NewReno (RFC 5681), every subflow by itself"),
    "cubic": CongestionControl("CUBIC (RFC 9438), every subflow by itself"),
    "bbr": CongestionControl("BBR, every subflow by itself"),
    "lia": CongestionControl("LIA, linked increases (RFC 6356)", bpf=True, coupled=True),
    "olia": CongestionControl("OLIA (Khalili et al., CoNEXT 2012)", bpf=True, coupled=True),
    "balia": CongestionControl("BALIA (Peng et al., ToN 2016)", bpf=True, coupled=True),
    "ewtcp": CongestionControl("EWTCP, each of n subflows weighted 1/n^2", bpf=True, coupled=True),
    "coupled": CongestionControl(
        "fully coupled (Wischik et al., NSDI 2011), in the simulator alone", coupled=True, emulated=False
    ),
    "dctcp": CongestionControl("DCTCP (RFC 8257), every subflow by itself", bpf=True, ecn=True),
}


def in_force(cc: str, subflows: int) -> str:
    """What a flow of `subflows` runs when `cc` is asked for: coupling needs something to couple."""
    return BASELINE if subflows == 1 and _known(cc).coupled else cc


def kernel_name(cc: str) -> str:
    """What the kernel calls it."""
    return _OURS + cc if _known(cc).bpf else cc


def name_of(kernel: str) -> str:
    """The inverse of `kernel_name`."""
    return kernel.removeprefix(_OURS)


def described(cc: str, subflows: Iterable[int]) -> str:
    """For captions of points with these counts: `reno`, `reno, uncoupled` or `lia, coupled (TCP: reno)`."""
    counts = set(subflows)
    if counts <= {1}:
        return in_force(cc, 1)
    told = f"{cc}, {'coupled' if _known(cc).coupled else 'uncoupled'}"
    return f"{told} (TCP: {BASELINE})" if 1 in counts and in_force(cc, 1) != cc else told


def _known(cc: str) -> CongestionControl:
    """A kernel may have others, which are then as they come."""
    return CONGESTION_CONTROLS.get(cc, CongestionControl(cc))
